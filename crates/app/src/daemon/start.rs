//! Starting: lock, store, token, configuration, runtime, listeners, in an order in which nobody is let in
//! before there is something to answer with.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use domain::scope::SecretRef;
use domain::store::StoreError;
use domain::text::ScopeName;
use extension::{BoxFuture, Secret, SecretError};
use runtime::{ApplyError, Runtime, SecretSource};
use store::Location;
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::applied::{Applied, ApplyFailure, Expected};
use super::extensions::Extensions;
use super::lock::{HomeLock, SocketFile};
use super::notify::ServiceManager;
use super::stop::Running;
use super::{Addresses, Daemon, Options, STREAMS_MAX, alive, follow, host, upkeep};
use crate::api::posture::Hosts;
use crate::api::server::Server;
use crate::auth::code::Codes;
use crate::auth::page_name::PageName;
use crate::auth::session::Sessions;
use crate::auth::{self, TokenError, Tokens};
use crate::config::secrets::SecretReader;
use crate::config::{Listeners, Problem, canonical, load_model};
use crate::env;
use crate::error_code::ErrorCode;
use crate::home::{Home, HomeError};
use crate::listener::ingress::Table;
use crate::listener::webhook::Webhooks;
use crate::listener::{self, Service, Socket};
use crate::toolbelt::token::RandomTokens;
use crate::toolbelt::{self, Door};

/// How often each stage looks for itself in a database that others write, too.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Why a daemon did not start.
#[derive(Debug, Error)]
pub(crate) enum DaemonError {
    /// Another one runs in the home.
    #[error("a daemon runs in this home already; `open-conduit status` shows it")]
    AlreadyRunning,
    /// The home cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The token could not be made.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The first configuration is not valid.
    #[error("the configuration is not valid; `open-conduit config check` shows what to mend")]
    Config(Vec<Problem>),
    /// The last applied configuration cannot be put in force.
    #[error("the last applied configuration cannot be put in force")]
    Apply(#[source] ApplyError),
    /// A listener cannot listen.
    #[error("cannot listen on {place}")]
    Listen {
        /// Where.
        place: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// An address is open to other machines without a proxy that was declared.
    #[error("{address} is open to other machines; declare `behind_proxy` or listen on a loopback address")]
    Open {
        /// The address.
        address: SocketAddr,
    },
}

impl DaemonError {
    /// The stable word for this error.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::AlreadyRunning => ErrorCode::AlreadyRunning.as_str(),
            Self::Home(_) | Self::Token(TokenError::Home(_)) => ErrorCode::Home.as_str(),
            Self::Store(error) | Self::Token(TokenError::Store(error)) => error.code(),
            Self::Token(TokenError::Random) => ErrorCode::NoRandomness.as_str(),
            Self::Config(_) | Self::Apply(_) => ErrorCode::InvalidConfig.as_str(),
            Self::Listen { .. } => ErrorCode::CannotListen.as_str(),
            Self::Open { .. } => ErrorCode::OpenWithoutProxy.as_str(),
        }
    }
}

/// The runtime's way to secrets.
#[derive(Debug)]
struct Resolver(Arc<SecretReader>);

impl SecretSource for Resolver {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
        reference: &'a SecretRef,
    ) -> BoxFuture<'a, Result<Secret, SecretError>> {
        Box::pin(self.0.read(name, reference))
    }
}

/// Starts a daemon in a home. When this answers well, it takes requests.
///
/// # Errors
/// [`DaemonError`]; then nothing listens, and the database is as it was or brought up to date.
pub(crate) async fn start(home: Home, options: Options) -> Result<Running, DaemonError> {
    home.create()?;
    let place = home.root().display().to_string();
    let lock = HomeLock::take(home.root()).map_err(|source| DaemonError::Listen { place, source })?;
    let lock = lock.ok_or(DaemonError::AlreadyRunning)?;
    let manager = ServiceManager::of(&options.environment);
    let location = options.location.unwrap_or_else(|| Location::Sqlite(home.database()));
    let host = match options.store.host {
        Some(host) => host,
        None => host::of_home(&home)?,
    };
    let store = store::open(&location, store::Options { host: Some(host), ..options.store }).await?;
    // Where others write, too, their hints are not heard here.
    let look_again = (!store.exclusive()).then_some(LOOK_AGAIN);
    let secrets = SecretReader::new(home.root().to_owned(), options.environment);
    let (runtime, stages) = Runtime::new(
        store,
        options.extensions.registry(),
        runtime::Options {
            read_scopes: read_scopes(options.extensions.clone()),
            secrets: Arc::new(Resolver(Arc::clone(&secrets))),
            tokens: Arc::new(RandomTokens),
            look_again,
        },
    );
    let started_at = runtime.store().now();
    let daemon = Arc::new(Daemon {
        page: PageName::of_home(&home)?,
        home,
        runtime,
        extensions: options.extensions,
        tokens: Tokens::default(),
        sessions: Sessions::default(),
        codes: Codes::default(),
        secrets,
        applied: RwLock::new(Arc::new(Applied::default())),
        applying: tokio::sync::Mutex::new(()),
        ingress: RwLock::new(Arc::new(Table::default())),
        streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        started_at,
        addresses: RwLock::new(Addresses::default()),
        tasks: TaskTracker::new(),
        stopping: CancellationToken::new(),
    });
    let started = match prepare(&daemon).await {
        Ok(()) => listen(&daemon, &lock, options.takes_webhooks).await,
        Err(error) => Err(error),
    };
    let sockets = match started {
        Ok(sockets) => sockets,
        Err(error) => {
            // The error that is told is the first one.
            drop(daemon.store().close().await);
            return Err(error);
        }
    };
    daemon.runtime().start(stages);
    spawn_loops(&daemon);
    manager.ready();
    let addresses = daemon.addresses();
    tracing::info!(
        home = %daemon.home().root().display(),
        api = addresses.api.map(tracing::field::display),
        webhooks = addresses.webhooks.map(tracing::field::display),
        generation = daemon.applied().number,
        "the daemon takes requests"
    );
    Ok(Running::new(daemon, manager, sockets, lock))
}

/// Starts what the daemon does beside the runtime's stages.
fn spawn_loops(daemon: &Arc<Daemon>) {
    daemon.spawn(upkeep::run(Arc::clone(daemon)));
    daemon.spawn(alive::run(Arc::clone(daemon)));
    if !daemon.store().exclusive() {
        daemon.spawn(follow::run(Arc::clone(daemon)));
    }
}

/// Turns the text of a generation into scopes, as the runtime asks for it.
fn read_scopes(extensions: Extensions) -> runtime::generation::ReadScopes {
    Arc::new(move |text| {
        let model = canonical::parse(text).map_err(|error| error.to_string())?;
        let loaded = load_model(model, &extensions)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
        Ok::<BTreeMap<ScopeName, _>, String>(loaded.scopes)
    })
}

/// Token and configuration. The first start of a home applies its file; later ones leave that to a person.
async fn prepare(daemon: &Arc<Daemon>) -> Result<(), DaemonError> {
    auth::prepare(daemon.home(), daemon.store()).await?;
    daemon.tokens().load(daemon.store()).await?;
    daemon.sessions().load(daemon.store()).await?;
    daemon.runtime().prepare().await.map_err(DaemonError::Apply)?;
    daemon.remember().await.map_err(DaemonError::Apply)?;
    let file = daemon.home().config()?;
    if daemon.applied().number == 0 {
        let Some(file) = file else {
            tracing::warn!(
                "the home has no configuration, so nothing is accepted; `open-conduit config apply` sets one"
            );
            return Ok(());
        };
        return match daemon.apply(&file.text, file.format, &Expected::default()).await {
            Ok(_done) => Ok(()),
            Err(ApplyFailure::Problems(problems)) => Err(DaemonError::Config(problems)),
            Err(ApplyFailure::NotPlanned) => Err(DaemonError::Apply(ApplyError::Conflict)),
            Err(ApplyFailure::Apply(error)) => Err(DaemonError::Apply(error)),
        };
    }
    if daemon.is_edited(file.as_ref()) {
        tracing::warn!(
            generation = daemon.applied().number,
            "the configuration file differs from the generation in force; `open-conduit config plan` shows how"
        );
    }
    Ok(())
}

async fn listen(
    daemon: &Arc<Daemon>,
    lock: &HomeLock,
    takes_webhooks: bool,
) -> Result<[SocketFile; 2], DaemonError> {
    let listeners = match &daemon.applied().model {
        Some(model) => Listeners::of(&model.daemon).map_err(DaemonError::Config)?,
        None => Listeners::of(&crate::config::model::Daemon::default()).map_err(DaemonError::Config)?,
    };
    let api = bind(listeners.api, &listeners).await?;
    let webhooks = match listeners.webhooks.filter(|_address| takes_webhooks) {
        Some(address) => Some(bind(address, &listeners).await?),
        None => None,
    };
    let (unix, file) = bind_in_home(daemon.home().socket(), lock)?;
    let (calls, calls_file) = bind_in_home(daemon.home().toolbelt_socket(), lock)?;
    install_toolbelt(daemon.home());
    let addresses =
        Addresses { api: Some(api.1), webhooks: webhooks.as_ref().map(|(_listener, address)| *address) };
    *daemon.addresses.write().unwrap_or_else(PoisonError::into_inner) = addresses;
    // From here on nothing fails, so this is a start; one that failed leaves what the last one said.
    note_start(daemon).await?;

    // Behind a declared proxy the API is addressed by the proxy's names as well; otherwise only by the machine's own,
    // since names that are there for webhooks alone open nothing else.
    let proxied = if listeners.behind_proxy { listeners.public_hosts.clone() } else { Vec::new() };
    let inside = Arc::new(Server::new(Arc::clone(daemon), None));
    daemon.spawn(listener::serve(daemon.listening(), Socket::Unix(unix), Service::Api(inside)));
    let door = Arc::new(Door::new(Arc::clone(daemon)));
    daemon.spawn(listener::serve(daemon.listening(), Socket::Unix(calls), Service::Toolbelt(door)));
    let (hosts, origin) = Hosts::with_page(api.1, proxied, daemon.page.name());
    daemon.page.is_at(origin);
    let outside = Arc::new(Server::new(Arc::clone(daemon), Some(hosts)));
    daemon.spawn(listener::serve(daemon.listening(), Socket::Tcp(api.0), Service::Api(outside)));
    if let Some((socket, address)) = webhooks {
        let hosts = Hosts::new(address, listeners.public_hosts);
        let webhooks = Arc::new(Webhooks::new(Arc::clone(daemon), hosts));
        daemon.spawn(listener::serve(daemon.listening(), Socket::Tcp(socket), Service::Webhooks(webhooks)));
    }
    Ok([file, calls_file])
}

fn bind_in_home(path: PathBuf, lock: &HomeLock) -> Result<(UnixListener, SocketFile), DaemonError> {
    let place = path.display().to_string();
    SocketFile::bind(path, lock).map_err(|source| DaemonError::Listen { place, source })
}

/// Puts the `os` command where jobs look for it. Without it they run as well, and make no calls by it.
fn install_toolbelt(home: &Home) {
    let installed = env::program_file().and_then(|program| toolbelt::install(home, &program));
    if let Err(error) = installed {
        tracing::warn!(%error, "the `os` command cannot be put where jobs find it");
    }
}

/// Notes the start, with what the last daemon of this home left, before recovery counts anything for it.
async fn note_start(daemon: &Daemon) -> Result<(), DaemonError> {
    let before = alive::last_seen(daemon.home())?;
    let life = daemon.store().incarnation();
    Ok(daemon.store().transact("start", move |tx| tx.insert_start(life, before)).await?)
}

/// Listens on an address, unless that would open the machine. The configuration was checked for it when it was
/// applied; this is the last door.
async fn bind(address: SocketAddr, listeners: &Listeners) -> Result<(TcpListener, SocketAddr), DaemonError> {
    if !address.ip().is_loopback() && !listeners.behind_proxy {
        return Err(DaemonError::Open { address });
    }
    let failed = |source| DaemonError::Listen { place: address.to_string(), source };
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let bound = socket.local_addr().map_err(failed)?;
    Ok((socket, bound))
}
