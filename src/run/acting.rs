//! What the dashboard does beside its loop to carry plans out: asks, reads, works out, writes the journal, and has the
//! errands of undertakings done. The app decides all of it; here it is only done, and what came of it told.

use std::collections::{BTreeMap, VecDeque};

use futures::future::select_all;
use tokio::sync::mpsc;

use crate::{
    app::{
        App,
        acts::{Begun, Checked, Chore, Told},
    },
    clock::Clock,
    conduct::{Errand, Notice, Orders, Waivers},
    executor::{
        errands::Link,
        guards,
        site::{Held, Site, SiteError, undoing},
    },
    journal::{Hold, Line, Past, What, Writer},
    plan::Plan,
};

/// Answers not yet taken in. When it is full, whoever has one waits, and so do the requests behind it.
const TOLD: usize = 64;

/// The loop's ends of everything that is carried out.
pub struct Acting {
    /// None where nothing can be.
    site: Option<Site>,
    tell: mpsc::Sender<Tidings>,
    pub tidings: mpsc::Receiver<Tidings>,
    underway: BTreeMap<String, Underway>,
}

/// What came of something that was done beside the loop.
pub enum Tidings {
    Told(Told),
    /// An undertaking stands in the journal, and this is what it has.
    Begun {
        number: u64,
        begun: Begun,
        held: Held,
    },
    /// The lines that were given stand in the journal, or why not.
    Written {
        plan: String,
        trouble: Option<String>,
    },
}

/// An undertaking that has begun and is not closed.
struct Underway {
    held: Held,
    /// When full, errands wait in their conduct. None once it is over: then nothing is asked for any more.
    errands: Option<mpsc::Sender<Errand>>,
    /// Lines that wait to be written, in their order.
    lines: VecDeque<Line>,
    /// Whether lines are being written.
    writes: bool,
    /// Whether it is let go of when all lines are written.
    ends: bool,
}

impl Acting {
    pub fn new(site: Option<Site>) -> Self {
        let (tell, tidings) = mpsc::channel(TOLD);
        Self { site, tell, tidings, underway: BTreeMap::new() }
    }

    /// Does everything that the app wants done.
    pub fn work_off(&mut self, app: &mut App, clock: Clock) {
        while let Some(chore) = app.next_chore() {
            self.begin(chore, clock);
        }
    }

    fn begin(&mut self, chore: Chore, clock: Clock) {
        match chore {
            Chore::Plan { number, job } => {
                let work = tokio::task::spawn_blocking(move || job.work());
                self.beside(async move {
                    let failed = |_| Err("working it out failed: this is a fault of kordon".into());
                    Told::Planned { number, plan: work.await.unwrap_or_else(failed) }
                });
            }
            Chore::Say { plan, notice } => {
                let Notice { at, level, subject, text } = notice;
                self.write(&plan, Line { at, plan: plan.clone(), what: What::Said { level, subject, text } });
            }
            Chore::End { plan, end, text, undid } => {
                let what = What::Ended { end: end.as_str().into(), text };
                self.write(&plan, Line { at: clock.now(), plan: plan.clone(), what });
                for line in undid.iter().flat_map(|past| undoing(&plan, past, clock.now())) {
                    self.write(&plan, line);
                }
                self.end(&plan);
            }
            Chore::FindUnfinished => {
                // Where nothing can be carried out, nothing was.
                let Some(site) = self.site.clone() else { return };
                let found = tokio::task::spawn_blocking(move || site.journal.cut_off());
                self.beside(async move {
                    let found = found.await.map(|found| found.map_err(|error| error.to_string()));
                    Told::Unfinished(found.unwrap_or_else(|error| Err(error.to_string())))
                });
            }
            Chore::FindUndoable { number, plan } => self.at_site(
                move |site| async move {
                    let found = tokio::task::spawn_blocking(move || site.undoable(plan.as_deref())).await;
                    found.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
                },
                move |found| Told::Undoable { number, found },
            ),
            Chore::Check { number, wanted } => self.at_site(
                move |site| async move {
                    let guards = guards::read(None).map_err(|error| error.to_string())?;
                    let missing = site.missing(&wanted).await;
                    let unasked = |why| format!("it could not be asked what is permitted: {why}");
                    Ok(Checked { guards, missing: missing.map_err(unasked)? })
                },
                move |checked| Told::Checked { number, checked },
            ),
            Chore::Begin { number, word, plan, orders, waivers } => {
                self.set_out(number, |site| begin(site, word, plan, orders, waivers));
            }
            Chore::Resume { number, plan } => self.set_out(number, |site| resume(site, plan)),
            Chore::Undo { number, plan } => self.set_out(number, |site| undo(site, plan)),
        }
    }

    /// Does something beside the loop, and tells what came of it.
    fn beside(&self, work: impl Future<Output = Told> + Send + 'static) {
        let tell = self.tell.clone();
        tokio::spawn(async move {
            // Nobody listens any more at the end of the program.
            let _ = tell.send(Tidings::Told(work.await)).await;
        });
    }

    /// The same for what takes a cluster that may be written to.
    fn at_site<T, W>(
        &self,
        work: impl FnOnce(Site) -> W,
        told: impl FnOnce(Result<T, String>) -> Told + Send + 'static,
    ) where
        T: Send + 'static,
        W: Future<Output = Result<T, String>> + Send + 'static,
    {
        let work = self.site.clone().map(work);
        self.beside(async move {
            let done = match work {
                Some(work) => work.await,
                None => Err("nothing can be carried out here".into()),
            };
            told(done)
        });
    }

    fn set_out<W>(&self, number: u64, work: impl FnOnce(Site) -> W)
    where
        W: Future<Output = Result<(Begun, Held), SiteError>> + Send + 'static,
    {
        let (work, tell) = (self.site.clone().map(work), self.tell.clone());
        tokio::spawn(async move {
            let begun = match work {
                Some(work) => work.await.map_err(|error| error.to_string()),
                None => Err("nothing can be carried out here".into()),
            };
            let tidings = match begun {
                Ok((begun, held)) => Tidings::Begun { number, begun, held },
                Err(why) => Tidings::Told(Told::Begun { number, begun: Err(why) }),
            };
            let _ = tell.send(tidings).await;
        });
    }

    /// Takes in what came of something; tells what of it the app has to know.
    pub fn take_in(&mut self, tidings: Tidings) -> Option<Told> {
        match tidings {
            Tidings::Told(told) => Some(told),
            Tidings::Begun { number, begun, held } => {
                self.set_up(held);
                Some(Told::Begun { number, begun: Ok(begun) })
            }
            Tidings::Written { plan, trouble } => {
                let underway = self.underway.get_mut(&plan)?;
                underway.writes = false;
                let closed = underway.ends && underway.lines.is_empty();
                self.go_on_writing(&plan);
                if closed {
                    self.underway.remove(&plan);
                }
                (closed || trouble.is_some()).then_some(Told::Written { plan, trouble, closed })
            }
        }
    }

    /// Starts the hands of an undertaking. What came of its errands joins all other tidings.
    fn set_up(&mut self, held: Held) {
        let Some(site) = &self.site else { return };
        let Link { errands, mut outcomes } = site.hands(&held);
        let (plan, tell) = (held.plan.clone(), self.tell.clone());
        tokio::spawn(async move {
            while let Some((id, outcome)) = outcomes.recv().await {
                let told = Told::Errand { plan: plan.clone(), id, outcome };
                if tell.send(Tidings::Told(told)).await.is_err() {
                    return;
                }
            }
        });
        let plan = held.plan.clone();
        let (errands, lines) = (Some(errands), VecDeque::new());
        self.underway.insert(plan, Underway { held, errands, lines, writes: false, ends: false });
    }

    fn write(&mut self, plan: &str, line: Line) {
        if let Some(underway) = self.underway.get_mut(plan) {
            underway.lines.push_back(line);
            self.go_on_writing(plan);
        }
    }

    /// Nothing more is asked for; it is let go of when its last line stands in the journal.
    fn end(&mut self, plan: &str) {
        if let Some(underway) = self.underway.get_mut(plan) {
            (underway.ends, underway.errands) = (true, None);
        }
    }

    /// Writes the lines that wait, one batch at a time, so that they stand in their order.
    fn go_on_writing(&mut self, plan: &str) {
        let Some(underway) = self.underway.get_mut(plan) else { return };
        if underway.writes || underway.lines.is_empty() {
            return;
        }
        underway.writes = true;
        let lines = std::mem::take(&mut underway.lines);
        let (plan, writer, tell) = (plan.to_owned(), underway.held.writer.clone(), self.tell.clone());
        tokio::spawn(async move {
            let trouble = write_all(&writer, lines).await.err();
            let trouble = trouble.map(|error| format!("the journal cannot be written: {error}"));
            let _ = tell.send(Tidings::Written { plan, trouble }).await;
        });
    }

    /// What errands of these undertakings can be sent through.
    pub fn doors<'a>(&self, wanting: impl Iterator<Item = &'a str>) -> Vec<(String, mpsc::Sender<Errand>)> {
        let door = |plan: &str| Some((plan.to_owned(), self.underway.get(plan)?.errands.clone()?));
        wanting.filter_map(door).collect()
    }
}

/// Waits until one of them has room for an errand; tells its name, and the room. For ever where there is none.
pub async fn room(doors: Vec<(String, mpsc::Sender<Errand>)>) -> Option<(String, mpsc::OwnedPermit<Errand>)> {
    if doors.is_empty() {
        return std::future::pending().await;
    }
    let rooms = doors
        .into_iter()
        .map(|(plan, errands)| Box::pin(async move { (plan, errands.reserve_owned().await) }));
    let ((plan, room), ..) = select_all(rooms).await;
    // The executor ends only with the program.
    Some((plan, room.ok()?))
}

async fn write_all(writer: &Writer, lines: VecDeque<Line>) -> std::io::Result<()> {
    for line in lines {
        writer.append(line).await?;
    }
    Ok(())
}

async fn begin(
    site: Site,
    word: &'static str,
    plan: Box<Plan>,
    orders: Orders,
    waivers: Waivers,
) -> Result<(Begun, Held), SiteError> {
    let (name, by) = (site.new_name(word), site.by.clone());
    let orders = Orders { plan: name.clone(), by: by.clone(), ..orders };
    let held = site.begin(&plan, &orders, &waivers).await?;
    Ok((Begun { plan: name, by, past: None }, held))
}

async fn resume(site: Site, plan: String) -> Result<(Begun, Held), SiteError> {
    let (hold, past) = take_up(&site, &plan).await?;
    if !past.is_unfinished() {
        return Err(SiteError::Over(plan));
    }
    let held = site.resume(hold, &plan).await?;
    Ok((Begun { plan, by: site.by, past: Some(past) }, held))
}

async fn undo(site: Site, plan: String) -> Result<(Begun, Held), SiteError> {
    let (hold, past) = take_up(&site, &plan).await?;
    let name = site.new_name("undo");
    let held = site.open(hold, &name)?;
    Ok((Begun { plan: name, by: site.by, past: Some(past) }, held))
}

/// Reading the journal may take a while.
async fn take_up(site: &Site, plan: &str) -> Result<(Hold, Past), SiteError> {
    let (site, plan) = (site.clone(), plan.to_owned());
    let taken = tokio::task::spawn_blocking(move || site.take_up(&plan)).await;
    taken.unwrap_or_else(|error| Err(SiteError::Write(std::io::Error::other(error))))
}
