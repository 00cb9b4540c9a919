//! Tests of what a crontab becomes, and of what it cannot.

use extension::ScopeName;
use serde_json::json;

use super::{Form, Imported, import, toml, value};
use crate::job::Entry;
use crate::zone::Zone;

fn read(text: &str) -> Imported {
    import(text, Form::User, &Zone::named("Europe/Berlin").unwrap())
}

/// Name, expression, zone and command of each job.
fn jobs(imported: &Imported) -> Vec<[String; 4]> {
    let row = |job: &super::ImportedJob| {
        [job.name.to_string(), job.cron.clone(), job.zone.name().to_owned(), job.command.clone()]
    };
    imported.jobs.iter().map(row).collect()
}

#[track_caller]
fn left_out(line: &str, why: &str) {
    let imported = read(line);
    assert!(imported.jobs.is_empty(), "{imported:?}");
    assert!(imported.untranslated[0].reason.contains(why), "{:?}", imported.untranslated);
}

#[test]
fn a_line_becomes_a_job_with_its_zone_and_variables() {
    let imported = read(
        "# nightly\n\nPATH = \"/usr/bin:/bin\"\n5 4 * * *\t/usr/local/bin/Backup.sh --all\n\
         @daily /usr/local/bin/backup.sh \\%d\nCRON_TZ=Europe/London\nSHELL=/bin/bash\n  0 9 * * mon-fri A=1 cd x && y\n",
    );
    assert_eq!(
        jobs(&imported),
        [
            ["backup", "5 4 * * *", "Europe/Berlin", "/usr/local/bin/Backup.sh --all"],
            ["backup-2", "@daily", "Europe/Berlin", "/usr/local/bin/backup.sh %d"],
            ["cd", "0 9 * * mon-fri", "Europe/London", "A=1 cd x && y"],
        ]
    );
    assert_eq!(imported.jobs[0].env["PATH"], "/usr/bin:/bin");
    assert_eq!((imported.jobs[0].line, imported.jobs[1].shell.as_deref()), (4, None));
    assert_eq!(imported.jobs[2].shell.as_deref(), Some("/bin/bash"));
    assert!(imported.untranslated.is_empty() && imported.notes.is_empty());
}

#[test]
fn sunday_by_its_other_number_stays_sunday() {
    let cron = |field: &str| read(&format!("0 1 * * {field} x")).jobs[0].cron.clone();
    assert_eq!(cron("7"), "0 1 * * 0");
    assert_eq!(cron("5-7"), "0 1 * * 0,5,6");
    assert_eq!(cron("1-7/2"), "0 1 * * 0,1,3,5");
    assert_eq!(cron("mon,7"), "0 1 * * 0,1");
    assert_eq!(cron("*/7"), "0 1 * * */7");
}

#[test]
fn what_would_run_at_other_times_is_left_out() {
    left_out("0 0 */2 * 1 x", "other days here");
    left_out("0 0 1,* * 1 x", "other days here");
    assert_eq!(read("0 0 */2 * * x").jobs.len(), 1);
    assert_eq!(read("0 0 1 * 1 x").jobs.len(), 1);
    left_out("@reboot x", "`@reboot`");
    left_out("0~9 * * * * x", "random");
    left_out("0 0 * * fri-sun x", "ends before it begins");
    left_out("0 25 * * * x", "the hour must be from 0 to 23");
    left_out("CRON_TZ=Nowhere/X\n0 1 * * * x", "IANA");
    assert_eq!(read("CRON_TZ=Nowhere/X\n0 1 * * * x").untranslated.len(), 2);
}

#[test]
fn what_has_no_equal_is_told_by_its_line_and_not_repeated() {
    left_out("0 0 * * * mail -s hunter2%body", "input");
    left_out("MAILTO=hunter2@example.com", "`runs log`");
    left_out("hunter2", "neither");
    left_out("0 0 * * * \u{1b}[31m", "control character");
    let imported = read("MAILTO=hunter2\nhunter2\n0 0 * * hunter2 x");
    assert!(!format!("{:?}", imported.untranslated).contains("hunter2"), "{:?}", imported.untranslated);
    let lines: Vec<usize> = imported.untranslated.iter().map(|remark| remark.line).collect();
    assert_eq!(lines, [1, 2, 3]);
}

#[test]
fn a_system_crontab_names_a_user() {
    let imported =
        import("17 * * * * root run-parts /etc/cron.hourly\n@daily root\n", Form::System, &Zone::utc());
    assert_eq!(jobs(&imported)[0][3], "run-parts /etc/cron.hourly");
    assert!(imported.notes[0].reason.contains("user of the daemon"));
    assert_eq!(imported.untranslated[0].line, 2);
}

#[test]
fn what_is_written_is_an_entry_with_a_binding_and_a_route_for_each() {
    let imported = read("A=x\"y\n5 4 * * * /bin/backup 'a\\b'\n0 0 * * * 9lives\n");
    let scope = ScopeName::known("main");
    let value = value(&imported, &scope);
    let config = &value["extensions"][0]["config"];
    let entry = Entry::read(config, &scope, &[]).unwrap();
    assert_eq!(entry.jobs.len(), 2);
    assert_eq!(entry.namespace.as_str(), "schedule/main");
    assert_eq!(value["bindings"][1]["name"], json!("lives"));
    assert_eq!(value["routes"][0]["config"], json!({ "jobs": ["backup"] }));
    let text = toml(&imported, &scope);
    let expected = r#"[[scopes.bindings]]
name = "backup"
executor = "shell"
config = { command = "/bin/backup 'a\\b'", env = { A = "x\"y" } }
"#;
    assert!(text.starts_with(expected), "{text}");
    let entry = r#"
[scopes.extensions.config]
namespace = "schedule/main"
jobs = [
  { name = "backup", cron = "5 4 * * *", time_zone = "Europe/Berlin" },
"#;
    assert!(text.contains(entry), "{text}");
}
