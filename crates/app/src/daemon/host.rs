//! Which host this daemon is, where several share a database: the machine, and the home with what its runs
//! left. Only a daemon in the same home on the same machine can tell what became of them.

use std::path::Path;

use store::Host;

use crate::auth::{TokenError, random_text};
use crate::home::Home;

/// Where Linux keeps the machine's own id.
const MACHINE_ID: &str = "/etc/machine-id";

/// The host that a home is. The first call gives the home an id, which stays. The claim on the home has to be
/// held, since two that live must not be one host.
///
/// # Errors
/// [`TokenError`] when the id can neither be read nor made.
pub(crate) fn of_home(home: &Home) -> Result<Host, TokenError> {
    let path = home.host();
    let written = home.read_private(&path)?.map(|text| text.trim().to_owned());
    let id = if let Some(id) = written.filter(|id| !id.is_empty()) {
        id
    } else {
        let id = random_text()?;
        home.write_private(&path, id.as_bytes())?;
        id
    };
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(host(&machine(Path::new(MACHINE_ID)), &id, &name, home.root()))
}

/// The machine's id. Images come without one; then the home's must do, and a copy of a home is its twin.
fn machine(path: &Path) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn host(machine: &str, id: &str, name: &str, root: &Path) -> Host {
    Host { identity: format!("{machine}/{id}"), label: format!("{name}:{}", root.display()) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{host, machine, of_home};
    use crate::home::Home;

    fn home(root: &Path) -> Home {
        let home = Home::find(Some(root.to_owned()), None, None, Path::new("/")).unwrap();
        home.create().unwrap();
        home
    }

    #[test]
    fn a_home_is_the_same_host_in_every_life_and_another_home_another() {
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (home(&directory.path().join("one")), home(&directory.path().join("two")));
        let first = of_home(&one).unwrap();
        assert_eq!(of_home(&one).unwrap(), first);
        assert_ne!(of_home(&two).unwrap().identity, first.identity);
        assert!(first.label.ends_with("/one"), "{}", first.label);
    }

    #[test]
    fn a_home_on_another_machine_is_another_host() {
        let on = |machine: &str| host(machine, "id", "name", Path::new("/home")).identity;
        assert_ne!(on("a"), on("b"));
        assert_eq!(machine(Path::new("/nowhere/machine-id")), "");
    }
}
