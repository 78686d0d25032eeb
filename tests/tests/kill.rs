//! Processes that share a GPU: one that is killed at any moment leaves nothing behind, and the faults of one do not
//! reach another. The processes are this test's own binary, started again.
//!
//! On a GPU: `cargo test -p nv-tests --test kill -- --ignored --test-threads=1 --nocapture`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test helpers: what is not there fails the test that asked for it"
)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use nv_host::{Backend, Device, Error, MapMode, Options};
use nv_proto::push::{MethodAddr, PushWriter, RunOp, Subchannel};
use nv_sim::Chip;
use nv_tests::conformance::{module, open, works};

/// Tells a started process what to do: `churn` or `compute`, then `rm` or `uvm`, then `gpu` or `sim`.
const VARIABLE: &str = "NV_TESTS_CHILD";
/// What begins the lines that a started process has to say.
const MARK: &str = "child: ";

fn options(kernel: bool, uvm: bool) -> Options {
    Options {
        backend: if kernel {
            Backend::Kernel(0)
        } else {
            Backend::Sim(Chip::Gh100)
        },
        map_mode: Some(if uvm { MapMode::Uvm } else { MapMode::Rm }),
        limit: Duration::from_secs(5),
    }
}

#[test]
fn killed_simulated() {
    killed(false, false, 6, 20, 150);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn killed_hardware_rm() {
    killed(true, false, 60, 40, 60);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn killed_hardware_uvm() {
    killed(true, true, 30, 250, 400);
}

#[test]
fn unharmed_simulated() {
    unharmed(false, false, 2);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn unharmed_hardware_rm() {
    unharmed(true, false, 10);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn unharmed_hardware_uvm() {
    unharmed(true, true, 5);
}

/// What a started process does. Started by hand it does a little of both on a simulated GPU.
#[test]
fn child() {
    let Ok(order) = std::env::var(VARIABLE) else {
        let options = options(false, false);
        churn_once(&options, 1);
        let device = open(&options);
        return assert_eq!(compute(&device, |round| round == 3), 3);
    };
    let words: Vec<&str> = order.split(' ').collect();
    let [what, map, on] = *words else {
        panic!("{order:?}")
    };
    let options = options(on == "gpu", map == "uvm");
    if what == "churn" {
        for round in 1.. {
            churn_once(&options, round);
            println!("{MARK}round {round}");
        }
    }
    let device = open(&options);
    works(&device);
    println!("{MARK}ready");
    // The end of the input is the sign to end.
    let end = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&end);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        seen.store(true, Ordering::Release);
    });
    let rounds = compute(&device, |_| end.load(Ordering::Acquire));
    println!("{MARK}{rounds} rounds right");
}

/// Everything that holds something of the GPU: a device, memory of each kind, a module, streams, work in flight.
fn churn_once(options: &Options, seed: u64) {
    let device = open(options);
    let values: Vec<u64> = (0..1 << 16).map(|i| i ^ seed).collect();
    let buffers: Vec<_> = (0..4).map(|_| device.upload(&values).unwrap()).collect();
    let pinned = device
        .alloc_in::<u64>(1 << 12, nv_host::Placement::Pinned)
        .unwrap();
    let module = module(&device, "faults");
    let ok = module.function("ok").unwrap();
    let streams = [device.stream().unwrap(), device.stream().unwrap()];
    for _ in 0..50 {
        for (stream, pair) in streams.iter().zip(buffers.chunks_exact(2)) {
            stream.copy(&pair[0], &pair[1]).unwrap();
            stream
                .launch(&ok)
                .grid(64)
                .block(32)
                .arg(&pair[1])
                .submit()
                .unwrap();
        }
    }
    drop(pinned);
    for (stream, buffer) in streams.iter().zip([&buffers[1], &buffers[3]]) {
        stream.synchronize().unwrap();
        let mut expected = values.clone();
        expected[..32].fill(7);
        assert!(buffer.read().unwrap() == expected);
    }
}

/// Adds vectors and checks the sums until `end`, which is told how many rounds were done; answers how many.
fn compute(device: &Device, end: impl Fn(u64) -> bool) -> u64 {
    let module = module(device, "k");
    let vadd = module.function("vadd").unwrap();
    let n = 1 << 12;
    let a = device.upload(&vec![1.5_f32; n]).unwrap();
    let sum = device.upload(&vec![0.0_f32; n]).unwrap();
    let stream = device.stream().unwrap();
    let mut rounds = 0;
    while !end(rounds) {
        sum.write(&vec![0.0; n]).unwrap();
        for _ in 0..8 {
            stream
                .launch(&vadd)
                .grid(16)
                .block(256)
                .arg(&a)
                .arg(&sum)
                .arg(&sum)
                .arg(n as i32)
                .submit()
                .unwrap();
        }
        stream.synchronize().unwrap();
        assert_eq!(sum.read().unwrap(), vec![12.0; n], "round {rounds}");
        rounds += 1;
    }
    rounds
}

/// Starts this binary again.
fn start(what: &str, kernel: bool, uvm: bool) -> Child {
    let order = [
        what,
        if uvm { "uvm" } else { "rm" },
        if kernel { "gpu" } else { "sim" },
    ];
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(VARIABLE, order.join(" "))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The lines of a started process, as they come.
fn lines(child: &mut Child) -> mpsc::Receiver<String> {
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            // The test harness writes its own words in front of the first.
            if let Some((_, said)) = line.split_once(MARK)
                && sender.send(said.to_owned()).is_err()
            {
                return;
            }
        }
    });
    receiver
}

/// Numbers that look random, the same ones each time (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Processes killed at any moment leave the GPU as it was: a third of them in the first `start_ms` of their life, in
/// which they open it, the others up to `work_ms` after they did all their work once.
fn killed(kernel: bool, uvm: bool, kills: u64, start_ms: u64, work_ms: u64) {
    let options = options(kernel, uvm);
    works(&open(&options));
    let before = open(&options).memory_info().unwrap();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut working, mut starting) = (0, 0);
    for kill in 0..kills {
        let mut child = start("churn", kernel, uvm);
        let said = lines(&mut child);
        let works = kill % 3 != 0;
        if works {
            let first = said.recv_timeout(Duration::from_secs(60));
            assert!(first.is_ok(), "{:?}", errors(&mut child));
        }
        let most_ms = if works { work_ms } else { start_ms };
        std::thread::sleep(Duration::from_micros(numbers.below(most_ms * 1000)));
        let running = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(running, "it ended by itself: {}", errors(&mut child));
        if works || said.try_iter().count() > 0 {
            working += 1;
        } else {
            starting += 1;
        }
    }
    println!("killed {working} at work and {starting} before they had done it once");
    // A new process works, and so does this one.
    let mut child = start("compute", kernel, uvm);
    let said = lines(&mut child);
    drop(child.stdin.take());
    let status = child.wait().unwrap();
    assert!(status.success(), "{}", errors(&mut child));
    assert!(said.iter().any(|line| line == "ready"));
    works(&open(&options));
    let after = open(&options).memory_info().unwrap();
    println!("free: {} bytes before, {} after", before.free, after.free);
    assert_eq!(after, before);
}

/// What a process that is not as it should be has said of it.
fn errors(child: &mut Child) -> String {
    let mut text = String::new();
    let _ = child.kill();
    if let Some(errors) = &mut child.stderr {
        let _ = errors.read_to_string(&mut text);
    }
    text
}

/// Another process computes, and checks each result, while work in this one faults in every way.
fn unharmed(kernel: bool, uvm: bool, rounds: u32) {
    let options = options(kernel, uvm);
    let mut child = start("compute", kernel, uvm);
    let said = lines(&mut child);
    let first = said.recv_timeout(Duration::from_secs(60));
    assert_eq!(first.as_deref(), Ok("ready"), "{}", errors(&mut child));
    let device = open(&options);
    let faults = module(&device, "faults");
    for _ in 0..rounds {
        for kernel in ["badaddr", "misalign", "trap", "sharedoob", "loop"] {
            let memory = device.upload(&[7_u64; 16]).unwrap();
            let function = faults.function(kernel).unwrap();
            let stream = device.stream().unwrap();
            let launch = stream
                .launch(&function)
                .grid(200)
                .block(32)
                .shared(1024)
                .arg(&memory);
            let limit = Duration::from_millis(if kernel == "loop" { 200 } else { 10_000 });
            let result = launch.submit().unwrap().wait_within(limit);
            match (kernel, result) {
                ("loop", Err(Error::Timeout { .. })) => stream.abandon(),
                (_, Err(Error::Fault(_))) => {}
                (_, other) => panic!("{kernel}: {other:?}"),
            }
            works(&device);
        }
        let stream = device.stream().unwrap();
        let mut words = [0; 8];
        let mut push = PushWriter::new(&mut words);
        let none = MethodAddr::new(0xff0).unwrap();
        push.run(RunOp::Inc, Subchannel::COMPUTE, none, &[0x77])
            .unwrap();
        let event = stream.submit_words(push.finish()).unwrap();
        assert!(matches!(event.wait(), Err(Error::Fault(_))));
        works(&device);
    }
    // The other is still at it, and every result was right.
    assert!(
        child.try_wait().unwrap().is_none(),
        "{}",
        errors(&mut child)
    );
    drop(child.stdin.take());
    let start = Instant::now();
    let status = child.wait().unwrap();
    assert!(status.success(), "{}", errors(&mut child));
    assert!(start.elapsed() < Duration::from_secs(30));
    let last = said.iter().last().unwrap();
    println!("{last}");
    let done: u64 = last.split(' ').next().unwrap().parse().unwrap();
    assert!(done > u64::from(rounds), "{last}");
}
