//! Start, reload, stop.

use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt::Debug;
use core::future::{Future as _, poll_fn};
use core::net::SocketAddr;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use crate::accept::accept;
use crate::error::{Error, ErrorKind};
use crate::log::{Log, Logged};
use crate::model::Model;
use crate::options::{Options, Signals};
use crate::slot::Slot;
use crate::succession::{Rollback, Succession};
use crate::watch::{Event, Shape, Watch};
use crate::worker::{Shared, TICK, Worker};

/// A listening server; it serves once it has a model.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    addr: SocketAddr,
    options: Options,
    log: Option<Log>,
    #[cfg(feature = "private")]
    private: Option<crate::private::Private>,
    handle: Handle,
}

/// Stops a server from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Handle {
    asked: Arc<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    stop: AtomicBool,
    reload: AtomicBool,
}

impl Handle {
    /// Lets the server stop as SIGTERM does: it accepts no new connections, finishes the requests in progress, and returns.
    pub fn stop(&self) {
        self.asked.stop.store(true, Ordering::Relaxed);
    }

    /// Lets it look at its file now, as SIGHUP does.
    pub fn reload(&self) {
        self.asked.reload.store(true, Ordering::Relaxed);
    }
}

impl Server {
    /// Listens on an address. Port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Bind`].
    pub fn bind(addr: impl ToSocketAddrs + Debug, options: Options) -> Result<Self, Error> {
        let bound = TcpListener::bind(&addr).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let addr = listener.local_addr()?;
            Ok((listener, addr))
        });
        let (listener, addr) = bound.map_err(|error| {
            Error::from(ErrorKind::Bind { addr: format!("{addr:?}").trim_matches('"').into(), error })
        })?;
        Ok(Self {
            listener,
            addr,
            options,
            log: None,
            #[cfg(feature = "private")]
            private: None,
            handle: Handle::default(),
        })
    }

    /// Answers encrypted requests, too, at `/private`.
    #[cfg(feature = "private")]
    #[must_use]
    pub fn with_private(mut self, private: crate::private::Private) -> Self {
        self.private = Some(private);
        self
    }

    /// Calls `log` for each request that was answered, from the thread that answered it: what takes long there takes long for clients.
    #[must_use]
    pub fn with_log(mut self, log: impl Fn(Logged<'_>) + Send + Sync + 'static) -> Self {
        self.log = Some(Log::new(log));
        self
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    /// What stops it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves this model until a signal or a [`Handle`] stops it and the requests in progress are completed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`].
    pub fn serve(self, model: Model) -> Result<(), Error> {
        self.run(model, None, || Err(None::<Infallible>), |_| {})
    }

    /// As [`serve`](Self::serve), with a model of a file: when the file changes, or at SIGHUP, `load` is called, and what it gives takes
    /// over. Whatever is wrong with it, the old model goes on answering; `report` hears of both. The two are called by the thread that
    /// called this.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`].
    pub fn serve_watched<E>(
        self,
        model: Model,
        watch: Watch,
        mut load: impl FnMut() -> Result<Model, E>,
        report: impl FnMut(Event<'_, E>),
    ) -> Result<(), Error> {
        self.run(model, Some(watch), || load().map_err(Some), report)
    }

    fn run<E>(
        self,
        model: Model,
        mut watch: Option<Watch>,
        mut load: impl FnMut() -> Result<Model, Option<E>>,
        mut report: impl FnMut(Event<'_, E>),
    ) -> Result<(), Error> {
        let runtime = runtime().map_err(Error::start)?;
        #[cfg_attr(not(feature = "private"), expect(unused_mut, reason = "nothing is added"))]
        let mut shared = Shared::new(self.options, self.addr, self.log, Slot::new(model));
        #[cfg(feature = "private")]
        {
            shared.private = self.private;
        }
        let (shared, listener, handle) = (Arc::new(shared), self.listener, self.handle);
        let mut signals = {
            let _entered = runtime.enter();
            SignalStreams::new(shared.options.signals).map_err(Error::start)?
        };
        let threads = start(&shared, &listener)?;
        drop(listener);
        loop {
            let signal = runtime.block_on(signals.next());
            let Asked { stop, reload } = &*handle.asked;
            if stop.load(Ordering::Relaxed) || signal == Some(Signal::Stop) {
                break;
            }
            if let Some(watch) = &mut watch {
                let now = reload.swap(false, Ordering::Relaxed) || signal == Some(Signal::Reload);
                if if now { watch.look_again() } else { watch.has_changed() } {
                    let hear = || {
                        let signal = runtime.block_on(signals.next());
                        if signal == Some(Signal::Reload) {
                            reload.store(true, Ordering::Relaxed);
                        }
                        stop.load(Ordering::Relaxed) || signal == Some(Signal::Stop)
                    };
                    if replace_and_hear(&shared, watch, &mut load, &mut report, hear) {
                        break;
                    }
                }
            }
        }
        report(Event::Draining { open: shared.connections.open() });
        shared.drain();
        for thread in threads {
            // A panic has been reported by its thread; the others still finish.
            let _ = thread.join();
        }
        Ok(())
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// One thread for each of so many; each has its own way to the listener.
fn start(shared: &Arc<Shared>, listener: &TcpListener) -> Result<Vec<JoinHandle<()>>, Error> {
    let spawned = (0..shared.counters.len()).map(|idx| {
        let listener = listener.try_clone()?;
        let runtime = runtime()?;
        let worker = Arc::new(Worker::new(shared, idx));
        thread::Builder::new().name(format!("serve-{idx}")).spawn(move || {
            runtime.block_on(async move {
                // It was made for this; if it fails here, the other threads go on.
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    accept(worker, listener).await;
                }
            });
        })
    });
    let spawned: io::Result<Vec<_>> = spawned.collect();
    spawned.map_err(|cause| {
        // Those that run stop by themselves.
        shared.drain();
        Error::start(cause)
    })
}

/// [`replace`], which may take long, while signals are heard. Whether one says that the server stops, which then begins at once.
fn replace_and_hear<E>(
    shared: &Shared,
    watch: &mut Watch,
    load: &mut impl FnMut() -> Result<Model, Option<E>>,
    report: &mut impl FnMut(Event<'_, E>),
    mut hear: impl FnMut() -> bool + Send,
) -> bool {
    /// Set when the load has ended, also by a panic: the other thread must not go on alone.
    struct Loaded<'f>(&'f AtomicBool);

    impl Drop for Loaded<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let is_loaded = AtomicBool::new(false);
    thread::scope(|scope| {
        // Without the thread, signals wait.
        let hearing = thread::Builder::new().spawn_scoped(scope, || {
            let mut stops = false;
            while !stops && !is_loaded.load(Ordering::Relaxed) {
                stops = hear();
            }
            if stops {
                shared.drain();
            }
            stops
        });
        let loaded = Loaded(&is_loaded);
        let is_taken = replace(shared, watch, load, report);
        watch.set_refused(!is_taken);
        drop(loaded);
        hearing.is_ok_and(|hearing| hearing.join().unwrap_or(false))
    })
}

/// Loads the changed file, and replaces the model if it is valid: whether it was.
fn replace<E>(
    shared: &Shared,
    watch: &mut Watch,
    load: &mut impl FnMut() -> Result<Model, Option<E>>,
    report: &mut impl FnMut(Event<'_, E>),
) -> bool {
    let model = match load() {
        // The loaded file must be the one that was detected; otherwise the next check finds the change.
        Ok(_) if !watch.is_as_seen() => return true,
        Ok(model) => model,
        Err(error) => {
            shared.rare.reload_failed();
            error.into_iter().for_each(|error| report(Event::NotLoaded(error)));
            return false;
        }
    };
    let served = shared.slot.current();
    if watch.shape == Shape::Keep && !model.takes_what(&served.model) {
        shared.rare.reload_failed();
        shared.rare.error("sv-shape");
        report(Event::OtherShape {
            expected: served.model.taken_beside(&model),
            found: model.taken_beside(&served.model),
        });
        return false;
    }
    if watch.succession == Succession::Newer
        && let Err(rollback) = Rollback::check(&served.model, &model)
    {
        shared.rare.reload_failed();
        shared.rare.error("sv-rollback");
        report(Event::RolledBack(rollback));
        return false;
    }
    shared.slot.replace(model);
    shared.rare.reloaded();
    // This thread lets go of the old one, too.
    let served = shared.slot.current();
    report(Event::Reloaded { model: &served.model, load_count: served.load_count });
    true
}

/// The action of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Stop,
    Reload,
}

/// The signals that are obeyed.
#[cfg(unix)]
struct SignalStreams(Vec<(tokio::signal::unix::Signal, Signal)>);

#[cfg(unix)]
impl SignalStreams {
    fn new(signals: Signals) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        if signals == Signals::Leave {
            return Ok(Self(Vec::new()));
        }
        let kinds = [
            (SignalKind::terminate(), Signal::Stop),
            (SignalKind::interrupt(), Signal::Stop),
            (SignalKind::hangup(), Signal::Reload),
        ];
        kinds.into_iter().map(|(kind, asks)| Ok((signal(kind)?, asks))).collect::<io::Result<_>>().map(Self)
    }

    /// The next signal; `None` after a while without one.
    async fn next(&mut self) -> Option<Signal> {
        let mut pause = pin!(sleep(TICK));
        poll_fn(|cx| {
            for (stream, asks) in &mut self.0 {
                if let Poll::Ready(Some(())) = stream.poll_recv(cx) {
                    return Poll::Ready(Some(*asks));
                }
            }
            pause.as_mut().poll(cx).map(|()| None)
        })
        .await
    }
}

/// The signals that are obeyed.
#[cfg(not(unix))]
struct SignalStreams(Signals);

#[cfg(not(unix))]
impl SignalStreams {
    fn new(signals: Signals) -> io::Result<Self> {
        Ok(Self(signals))
    }

    /// The next signal; `None` after a while without one.
    async fn next(&mut self) -> Option<Signal> {
        let mut pause = pin!(sleep(TICK));
        let mut asked = pin!(tokio::signal::ctrl_c());
        let obeys = self.0 == Signals::Obey;
        poll_fn(|cx| {
            if obeys && asked.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Some(Signal::Stop));
            }
            pause.as_mut().poll(cx).map(|()| None)
        })
        .await
    }
}
