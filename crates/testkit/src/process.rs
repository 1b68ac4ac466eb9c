//! Child processes that never outlive us, log to a file and can be measured.
//!
//! Everything that testkit starts goes through [`Process::start`]. The kernel kills a child when the *thread* that
//! made it ends (`PR_SET_PDEATHSIG`), and a test's thread ends with the test; therefore one thread that lives as long
//! as the process makes all of them.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;
use std::{io, thread};

use anyhow::{Context as _, Result, bail};

/// A running program whose output goes to a file. It is killed on drop, and by the kernel when this process dies.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: u32,
    child: Mutex<Child>,
    log: PathBuf,
}

/// Resource usage of a process, as the kernel counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Resident set size now, in bytes.
    pub resident_bytes: u64,
    /// Highest resident set size so far, in bytes.
    pub peak_resident_bytes: u64,
    /// Anonymous part of the resident set, in bytes; the rest are pages of files, foremost the program.
    pub anonymous_bytes: u64,
    /// User and system time so far.
    pub cpu_time: Duration,
}

impl Process {
    /// Starts `command` with its output appended to the file `log`.
    pub fn start(name: impl Into<String>, mut command: Command, log: impl Into<PathBuf>) -> Result<Self> {
        let (name, log) = (name.into(), log.into());
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("failed to open the log {}", log.display()))?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let program = command.get_program().to_owned();
        let child = spawn_tied_to_us(command)
            .with_context(|| format!("failed to start {name} ({})", program.display()))?;
        Ok(Self {
            name,
            pid: child.id(),
            child: Mutex::new(child),
            log,
        })
    }

    /// The name that was given at the start.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The file that has everything it printed.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// The whole log. Empty when it cannot be read.
    pub fn log(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The last lines of the log, indented, for error messages.
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.log(), lines)
    }

    /// How it ended; None while it runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.try_wait().ok().flatten()
    }

    /// Fails with the tail of the log when the process has ended.
    pub fn check_running(&self) -> Result<()> {
        let Some(status) = self.exit_status() else {
            return Ok(());
        };
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended".to_owned(),
        };
        bail!(
            "{} {how}; the end of its log {}:\n{}",
            self.name,
            self.log.display(),
            self.log_tail(20)
        )
    }

    /// Kills it as `kill -9` does, and waits until it is gone.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // Both fail only when it is gone already.
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Stops it where it is, as `kill -STOP` does: it answers no one until it is [resumed](Self::resume).
    pub fn pause(&self) {
        send_signal(self.pid, libc::SIGSTOP);
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn resume(&self) {
        send_signal(self.pid, libc::SIGCONT);
    }

    /// Asks it to end with SIGTERM and waits at most `patience`.
    pub fn terminate(&self, patience: Duration) -> Result<ExitStatus> {
        send_signal(self.pid, libc::SIGTERM);
        let deadline = std::time::Instant::now() + patience;
        while std::time::Instant::now() < deadline {
            if let Some(status) = self.exit_status() {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!(
            "{} still runs {patience:?} after SIGTERM; the end of its log:\n{}",
            self.name,
            self.log_tail(20)
        )
    }

    /// Resident set size now, in which pages that several processes share count by its share of them, in bytes.
    pub fn proportional_bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/smaps_rollup", self.pid);
        let text = std::fs::read_to_string(&path).with_context(|| format!("failed to read {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kibibytes
            .map(|kibibytes| kibibytes * 1024)
            .context("its share of memory is not counted here")
    }

    /// Reads the usage so far from /proc.
    pub fn usage(&self) -> Result<Usage> {
        let read = |file: &str| {
            let path = format!("/proc/{}/{file}", self.pid);
            fs::read_to_string(&path).with_context(|| format!("failed to read {path} of {}", self.name))
        };
        parse_usage(&read("status")?, &read("stat")?)
            .with_context(|| format!("failed to read the usage of {}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last `lines` lines of `text`, indented by four.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let kept = &all[all.len().saturating_sub(lines)..];
    kept.iter()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn parse_usage(status: &str, stat: &str) -> Option<Usage> {
    let kibibytes = |field: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.split_whitespace().next()?.parse().ok()
    };
    // proc(5): the program's name is in parentheses and may hold anything; utime and stime are fields 14 and 15.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Usage {
        resident_bytes: kibibytes("VmRSS:")? * 1024,
        peak_resident_bytes: kibibytes("VmHWM:")? * 1024,
        anonymous_bytes: kibibytes("RssAnon:")? * 1024,
        // USER_HZ is 100 on every Linux that we run on; it is part of the kernel's ABI.
        cpu_time: Duration::from_millis(ticks * 10),
    })
}

type Order = (Command, mpsc::SyncSender<io::Result<Child>>);

/// Spawns on the thread that lives as long as the process; see the module's text.
fn spawn_tied_to_us(mut command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    die_with_parent(&mut command);
    // An own group: Ctrl-C in a terminal reaches us only, and we end our children in order.
    command.process_group(0);
    let (reply, answer) = mpsc::sync_channel(1);
    let spawner = SPAWNER.get_or_init(|| Mutex::new(start_spawner()));
    let gone = || io::Error::other("the thread that starts processes is gone");
    let orders = spawner.lock().unwrap_or_else(PoisonError::into_inner);
    orders.send((command, reply)).map_err(|_| gone())?;
    drop(orders);
    answer.recv().map_err(|_| gone())?
}

fn start_spawner() -> mpsc::Sender<Order> {
    let (orders, inbox) = mpsc::channel::<Order>();
    thread::spawn(move || {
        for (mut command, reply) in inbox {
            // The caller may have given up waiting; its child is then killed by dropping the answer's Process.
            let _ = reply.send(command.spawn());
        }
    });
    orders
}

#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let tie = move || {
        // SAFETY: prctl and getppid are async-signal-safe and touch no memory of ours.
        let (tied, owner) = unsafe {
            (
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0,
                libc::getppid(),
            )
        };
        if !tied {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died between fork and prctl: then no one would ever send the signal.
        if u32::try_from(owner) != Ok(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure runs after fork; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(tie) };
}

#[allow(unsafe_code)]
fn send_signal(pid: u32, signal: libc::c_int) {
    let Ok(pid) = libc::pid_t::try_from(pid) else {
        return;
    };
    // SAFETY: a plain system call; the child is not reaped before exit_status() saw its end, so the id is its own.
    unsafe { libc::kill(pid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> (Process, tempfile::TempDir) {
        let directory = crate::scratch::directory("process").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (
            Process::start("sh", command, directory.path().join("log")).unwrap(),
            directory,
        )
    }

    fn wait_for_end(process: &Process) {
        while process.exit_status().is_none() {
            thread::yield_now();
        }
    }

    #[test]
    fn an_ended_process_is_reported_with_its_code_and_the_end_of_its_log() {
        let (process, _directory) = shell("echo one; echo two >&2; exit 3");
        wait_for_end(&process);
        let message = process.check_running().unwrap_err().to_string();
        assert!(message.contains("sh exited with code 3"), "{message}");
        assert!(message.contains("    one\n    two"), "{message}");
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let (process, _directory) = thread::spawn(|| shell("exec sleep 60")).join().unwrap();
        process.check_running().unwrap();
        assert!(process.usage().unwrap().resident_bytes > 0);
        process.kill();
        assert_eq!(process.exit_status().unwrap().signal(), Some(9));
    }

    #[test]
    fn terminate_gives_the_process_the_chance_to_end_by_itself() {
        let (process, _directory) = shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
        while !process.log().contains("ready") {
            thread::yield_now();
        }
        assert_eq!(
            process.terminate(Duration::from_secs(10)).unwrap().code(),
            Some(7)
        );
    }

    #[test]
    fn a_paused_process_goes_on_when_it_is_resumed() {
        let (process, _directory) = shell("while :; do echo x; sleep 0.005; done");
        let state = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid())).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('T')
        };
        process.pause();
        while !state() {
            thread::yield_now();
        }
        let before = process.log().len();
        process.resume();
        while process.log().len() <= before {
            thread::yield_now();
        }
    }

    #[test]
    fn usage_is_read_past_a_program_name_with_spaces_and_parentheses() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\n";
        let stat = "7 (a) b) S 1 1 1 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 1 0 1 1 1";
        let usage = parse_usage(status, stat).unwrap();
        assert_eq!(usage.resident_bytes, 1024 * 1024);
        assert_eq!(usage.peak_resident_bytes, 2048 * 1024);
        assert_eq!(usage.anonymous_bytes, 512 * 1024);
        assert_eq!(usage.cpu_time, Duration::from_secs(2));
    }
}
