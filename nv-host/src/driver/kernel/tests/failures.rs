//! Every way to fail: a made-up kernel that works, but for one thing.

use crate::probe::{Level, Report};

use super::*;

/// Statuses of the calls that a made-up kernel fails, and what it saw.
#[derive(Default)]
struct Troubles {
    version: Option<&'static str>,
    errnos: HashMap<u8, Errno>,
    statuses: HashMap<u32, Status>,
    uvm_status: u32,
    moved: u64,
    classes: u32,
    cards: u8,
    seen: Vec<u8>,
}

/// A kernel of one GPU that does what it is asked, but for its troubles.
fn kernel(troubles: Troubles) -> (Fake, Arc<Mutex<Troubles>>) {
    let troubles = Arc::new(Mutex::new(troubles));
    let shared = Arc::clone(&troubles);
    let fake = Fake::new(Box::new(move |path, request, params| {
        let mut troubles = shared.lock().unwrap();
        match rm::parse_request(request) {
            Some((escape, _)) => {
                troubles.seen.push(escape);
                match troubles.errnos.get(&escape) {
                    Some(errno) => return Err(*errno),
                    None => answer(&troubles, escape, params),
                }
            }
            None => {
                assert_eq!(path, Path::new(UVM_NODE));
                let version = DriverVersion::new(580, 159, 4);
                let shape = uvm::shape(request, version).unwrap();
                let status = shape
                    .fields
                    .iter()
                    .find(|field| field.name == "rmStatus")
                    .unwrap();
                let place = status.offset..status.offset + 4;
                let warns = request == uvm::MmInitialize::COMMAND;
                let status = if warns { 0x10006 } else { troubles.uvm_status };
                params[place].copy_from_slice(&status.to_le_bytes());
            }
        }
        Ok(())
    }));
    (fake, troubles)
}

fn answer(troubles: &Troubles, escape: u8, params: &mut [u8]) {
    let status = |key: u32| {
        troubles
            .statuses
            .get(&key)
            .copied()
            .unwrap_or(Status::OK)
            .0
            .into()
    };
    match escape {
        rm::NV_ESC_CHECK_VERSION_STR => {
            let text = troubles.version.unwrap_or("580.159.04");
            view::<rm::ApiVersion>(params).version_string[..text.len()]
                .copy_from_slice(text.as_bytes());
        }
        rm::NV_ESC_CARD_INFO => {
            // Bus 9 first: the driver sorts.
            for (card, bus) in params
                .chunks_exact_mut(72)
                .zip([9, 6, 7])
                .take(troubles.cards.into())
            {
                let card = view::<rm::CardInfo>(card);
                card.valid = 1;
                card.pci_info.bus = bus;
                card.gpu_id = (u32::from(bus) << 8).into();
                card.minor_number = u32::from(bus).into();
            }
        }
        rm::NV_ESC_RM_ALLOC => {
            let call = view::<rm::Nvos21>(params);
            call.status = status(call.h_class.get());
            call.h_object_new = 0xcaf0_0000.into();
        }
        rm::NV_ESC_RM_CONTROL => {
            let call = view::<rm::Nvos54>(params);
            call.status = status(call.cmd.get());
            if call.cmd.get() == rm::NV0080_CTRL_CMD_GPU_GET_CLASSLIST {
                // SAFETY: the driver names its own parameters of that size, and waits for us.
                let list = unsafe { named(call.params.get(), call.params_size.get() as usize) };
                view::<rm::GpuGetClasslist>(list).num_classes = troubles.classes.into();
            }
        }
        rm::NV_ESC_RM_DUP_OBJECT => {
            let call = view::<rm::Nvos55>(params);
            assert_eq!(call.h_client.get(), 0xcaf0_0000);
            assert_eq!((call.h_parent.get(), call.h_client_src.get()), (1, 2));
            assert_eq!(call.h_object_src.get(), 3);
            call.status = status(u32::from(escape));
        }
        rm::NV_ESC_RM_MAP_MEMORY => {
            let call = view::<rm::Nvos33WithFd>(params);
            call.params.status = status(u32::from(escape));
            call.params.p_linear_address = 0x1234_0000.into();
        }
        rm::NV_ESC_RM_UNMAP_MEMORY => {
            assert_eq!(
                view::<rm::Nvos34>(params).p_linear_address.get(),
                0x1234_0000
            );
        }
        rm::NV_ESC_RM_MAP_MEMORY_DMA => {
            let call = view::<rm::Nvos46>(params);
            call.status = status(u32::from(escape));
            call.dma_offset = (call.dma_offset.get() + troubles.moved).into();
        }
        rm::NV_ESC_RM_ALLOC_MEMORY => {
            view::<rm::Nvos02WithFd>(params).params.status = status(u32::from(escape));
        }
        _ => {}
    }
}

fn one_gpu() -> Troubles {
    Troubles {
        cards: 1,
        classes: 103,
        ..Default::default()
    }
}

fn text<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

const PAGE: MapCpu = MapCpu {
    device: Handle(1),
    memory: Handle(2),
    offset: 0,
    length: 0x1000,
    flags: 0,
    system: true,
};

#[test]
fn nodes_that_do_not_open_say_what_to_do() {
    for (node, errno, word) in [
        ("/dev/nvidiactl", Errno::ENOENT, "modprobe nvidia"),
        ("/dev/nvidiactl", Errno::EACCES, "permissions"),
        ("/dev/nvidia9", Errno::EPERM, "device rules"),
        ("/dev/nvidia9", Errno::ENXIO, "no driver answers"),
        ("/dev/nvidia9", Errno::EIO, "dmesg"),
    ] {
        let (fake, _) = kernel(one_gpu());
        fake.machine().refused.insert(node.into(), errno);
        let error = fake.driver().unwrap_err();
        let Error::Node {
            path,
            operation,
            errno: seen,
            remedy,
        } = &error
        else {
            panic!("{error:?}")
        };
        assert_eq!(
            (path.as_path(), *operation, *seen),
            (Path::new(node), "open", errno)
        );
        assert!(remedy.contains(word), "{remedy}");
        assert!(
            error
                .to_string()
                .starts_with(&format!("open {node}: {errno}")),
            "{error}"
        );
        assert_eq!(fake.open_nodes(), 0);
    }
}

#[test]
fn the_release_is_read_elsewhere_when_the_driver_does_not_tell() {
    let errnos = HashMap::from([(rm::NV_ESC_CHECK_VERSION_STR, Errno::EINVAL)]);
    let silent = || Troubles {
        errnos: errnos.clone(),
        ..one_gpu()
    };
    let (fake, _) = kernel(silent());
    let error = text(fake.driver());
    assert!(
        error.starts_with("NV_ESC_CHECK_VERSION_STR /dev/nvidiactl: EINVAL"),
        "{error}"
    );

    let (fake, _) = kernel(silent());
    fake.machine()
        .texts
        .insert("/sys/module/nvidia/version".into(), "570.86.15\n".into());
    assert_eq!(
        fake.driver().unwrap().version(),
        DriverVersion::new(570, 86, 15)
    );

    let (fake, _) = kernel(Troubles {
        version: Some("?"),
        ..one_gpu()
    });
    let line = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 2024\n";
    fake.machine()
        .texts
        .insert("/proc/driver/nvidia/version".into(), line.into());
    assert_eq!(
        fake.driver().unwrap().version(),
        DriverVersion::new(550, 54, 14)
    );

    let (fake, _) = kernel(Troubles {
        version: Some("?"),
        ..one_gpu()
    });
    assert!(text(fake.driver()).contains("calls its release \"?\""));
}

#[test]
fn releases_too_old_are_refused_and_unknown_ones_flagged() {
    let (fake, _) = kernel(Troubles {
        version: Some("470.256.02"),
        ..one_gpu()
    });
    assert!(text(fake.driver()).contains("older than 535.43.02"));
    let (fake, _) = kernel(Troubles {
        version: Some("650.10.01"),
        statuses: HashMap::from([(0x2080, Status::INVALID_PARAM_STRUCT)]),
        ..one_gpu()
    });
    let driver = fake.driver().unwrap();
    assert_eq!(driver.abi().fit, rm::Fit::Nearest);
    let error = text(driver::alloc(
        &driver,
        Handle(1),
        NV20_SUBDEVICE_0,
        &mut rm::SubdeviceAlloc::default(),
    ));
    assert!(
        error.contains("NV20_SUBDEVICE_0") && error.contains("like 610"),
        "{error}"
    );
}

#[test]
fn the_first_gpu_that_opens_is_taken_where_none_is_named() {
    let (fake, _) = kernel(Troubles {
        cards: 3,
        ..one_gpu()
    });
    let first = || KernelDriver::open(Box::new(fake.clone()), None, None, None);
    assert_eq!(first().unwrap().address().bus, 6);
    let refuse = |node: &str, errno| fake.machine().refused.insert(node.into(), errno);
    refuse("/dev/nvidia6", Errno::ENOENT);
    assert_eq!(first().unwrap().address().bus, 7);
    // One that was asked for by its index is that one or none.
    assert!(text(fake.driver()).starts_with("open /dev/nvidia6: ENOENT"));
    refuse("/dev/nvidia7", Errno::EPERM);
    refuse("/dev/nvidia9", Errno::EIO);
    assert!(text(first()).starts_with("open /dev/nvidia6: ENOENT"));
    assert_eq!(fake.open_nodes(), 0);
}

#[test]
fn gpus_are_counted_in_bus_order_among_those_visible() {
    let (fake, _) = kernel(Troubles {
        cards: 3,
        ..one_gpu()
    });
    for (bus, uuid) in [(6, "GPU-aa11"), (7, "GPU-bb22"), (9, "GPU-????????")] {
        let file = format!("/proc/driver/nvidia/gpus/0000:0{bus}:00.0/information");
        fake.machine()
            .texts
            .insert(file.into(), format!("GPU UUID: \t {uuid}\n"));
    }
    let visible = |list: &str| VisibleDevices::from_lookup(|_| Some(list.to_owned()));
    let open = |index, visible: Option<VisibleDevices>| {
        KernelDriver::open(Box::new(fake.clone()), Some(index), visible.as_ref(), None)
    };
    let bus = |index, visible| open(index, visible).unwrap().address().bus;
    assert_eq!([bus(0, None), bus(1, None), bus(2, None)], [6, 7, 9]);
    assert_eq!(text(open(3, None)), "there is no GPU 3: 3 can be used");
    assert_eq!(
        [bus(0, visible("2,GPU-bb")), bus(1, visible("2,GPU-bb"))],
        [9, 7]
    );
    let error = text(open(2, visible("2,GPU-bb")));
    assert_eq!(
        error,
        "there is no GPU 2: 2 can be used (VISIBLE_DEVICES=2,GPU-bb)"
    );
    assert!(text(open(0, visible("-1"))).starts_with("there is no GPU 0: 0 can be used"));
    assert!(text(open(0, visible("1,1"))).contains("named twice"));
    let (fake, _) = kernel(Troubles {
        cards: 0,
        ..one_gpu()
    });
    assert!(text(fake.driver()).contains("shows no GPU"));
}

#[test]
fn gpus_are_listed_with_none_opened() {
    let (fake, _) = kernel(Troubles {
        cards: 3,
        ..one_gpu()
    });
    let file = |bus: u8| format!("/proc/driver/nvidia/gpus/0000:0{bus}:00.0/information").into();
    let text = "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-bb22\n".to_owned();
    fake.machine().texts.insert(file(7), text);
    let list = |visible: Option<VisibleDevices>| {
        let listed = listed(Box::new(fake.clone()), visible.as_ref(), None).unwrap();
        let row = |gpu: Listed| (gpu.index, gpu.address.bus, gpu.name, gpu.uuid);
        listed.into_iter().map(row).collect::<Vec<_>>()
    };
    let named = (Some("NVIDIA H200".to_owned()), Some("GPU-bb22".to_owned()));
    let all = [
        (0, 6, None, None),
        (1, 7, named.0.clone(), named.1.clone()),
        (2, 9, None, None),
    ];
    assert_eq!(list(None), all);
    let visible = VisibleDevices::from_lookup(|_| Some("GPU-bb,0".into()));
    assert_eq!(
        list(visible),
        [(0, 7, named.0, named.1), (1, 6, None, None)]
    );
    assert_eq!(list(VisibleDevices::from_lookup(|_| Some("-1".into()))), []);
    // The control node alone, each time.
    assert_eq!(fake.machine().opens, 3);
    assert_eq!(fake.open_nodes(), 0);
}

#[test]
fn layouts_are_forced_by_the_caller_or_by_the_environment() {
    let forced = |asked, text: Option<&str>| {
        forced_abi(asked, |variable| {
            assert_eq!(variable, "NV_DRIVER_ABI");
            text.map(str::to_owned)
        })
    };
    let version = DriverVersion::new(550, 163, 1);
    assert_eq!(forced(None, None).unwrap(), None);
    assert_eq!(forced(None, Some("")).unwrap(), None);
    assert_eq!(forced(None, Some("550.163.01")).unwrap(), Some(version));
    assert_eq!(forced(Some(version), Some("?")).unwrap(), Some(version));
    let error = text(forced(None, Some("newest")));
    assert!(
        error.contains("NV_DRIVER_ABI=newest") && error.contains("535.43.02"),
        "{error}"
    );

    let open = |release: &'static str, forced| {
        let (fake, _) = kernel(Troubles {
            version: Some(release),
            ..one_gpu()
        });
        KernelDriver::open(Box::new(fake), Some(0), None, forced)
    };
    let driver = open("470.256.02", Some(version)).unwrap();
    assert_eq!(driver.version(), version);
    assert_eq!(driver.release(), DriverVersion::new(470, 256, 2));
    let warning = driver::warning(&driver).unwrap();
    assert!(
        warning.contains("470.256.02") && warning.contains("550.163.01"),
        "{warning}"
    );
    assert_eq!(driver::warning(&open("580.159.04", None).unwrap()), None);
    assert_eq!(driver::warning(&open("580.999.01", None).unwrap()), None);
    let warning = driver::warning(&open("999.1.1", None).unwrap()).unwrap();
    assert!(
        warning.contains("newer than all that are known"),
        "{warning}"
    );
    let warning = driver::warning(&open("600.1.1", None).unwrap()).unwrap();
    assert!(
        warning.contains("not known") && warning.contains("branch 595"),
        "{warning}"
    );
    let error = text(open("470.256.02", None));
    assert!(
        error.contains("older than 535.43.02") && error.contains("NV_DRIVER_ABI"),
        "{error}"
    );
    let error = text(open("580.159.04", Some(DriverVersion::new(390, 1, 1))));
    assert!(error.contains("390.01.01"), "{error}");
}

#[test]
fn objects_of_other_clients_and_other_gpus_are_named() {
    let (fake, troubles) = kernel(Troubles {
        cards: 3,
        ..one_gpu()
    });
    let driver = fake.driver().unwrap();
    let (first, second) = (
        driver.dup(Handle(1), Handle(2), Handle(3)).unwrap(),
        driver.dup(Handle(1), Handle(2), Handle(3)).unwrap(),
    );
    assert_ne!(first, second);
    troubles.lock().unwrap().statuses = HashMap::from([(
        u32::from(rm::NV_ESC_RM_DUP_OBJECT),
        Status::INSUFFICIENT_PERMISSIONS,
    )]);
    let error = text(driver.dup(Handle(1), Handle(2), Handle(3)));
    assert!(
        error.contains("duplicating object 0x3 of client 0x2")
            && error.contains("NV_ERR_INSUFFICIENT_PERMISSIONS"),
        "{error}"
    );
    let open = fake.open_nodes();
    let attached = driver.attach(0x900).unwrap();
    assert_eq!(fake.open_nodes(), open + 1);
    drop(attached);
    assert_eq!(fake.open_nodes(), open);
    assert!(text(driver.attach(0xa00)).contains("the GPU of id 0xa00 is gone"));
}

#[test]
fn the_doctor_finds_what_a_sandbox_refuses() {
    let mut report = Report::new(Path::new("/nowhere"), None, |_| Ok(()));
    let before = report.checks.len();
    let (fake, _) = kernel(one_gpu());
    report.try_calls(Ok(&fake.driver().unwrap()));
    let found: Vec<_> = report
        .checks
        .drain(before..)
        .map(|check| check.level)
        .collect();
    assert_eq!(found, [Level::Good; 3]);

    let flush = <rm::FbFlushGpuCache as rm::Control>::COMMAND;
    let statuses = HashMap::from([
        (NV01_MEMORY_VIRTUAL.0, Status::NOT_SUPPORTED),
        (flush, Status::INSUFFICIENT_PERMISSIONS),
    ]);
    let (fake, _) = kernel(Troubles {
        statuses,
        ..one_gpu()
    });
    report.try_calls(Ok(&fake.driver().unwrap()));
    let found: Vec<_> = report.checks.drain(before..).collect();
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].level, Level::Good);
    assert_eq!(found[1].level, Level::Limit);
    assert!(
        found[1]
            .finding
            .contains("NV01_MEMORY_VIRTUAL failed: NV_ERR_NOT_SUPPORTED (0x56)")
    );
    assert!(found[1].remedy.contains("UVM"));
    assert_eq!(found[2].level, Level::Limit);

    // What is refused by the system call itself.
    let errnos = HashMap::from([(rm::NV_ESC_RM_ALLOC, Errno::EPERM)]);
    let (fake, troubles) = kernel(one_gpu());
    let driver = fake.driver().unwrap();
    troubles.lock().unwrap().errnos = errnos;
    report.try_calls(Ok(&driver));
    assert!(
        report.checks[before]
            .finding
            .starts_with("NV_ESC_RM_ALLOC /dev/nvidiactl: EPERM")
    );
    assert_eq!(report.checks.len(), before + 1);
    report.try_calls(Err(&Error::Unsupported("no".into())));
    assert_eq!(report.level(), Level::Bad);
}

#[test]
fn a_client_that_is_refused_is_an_error_and_ends_all() {
    let statuses = HashMap::from([(NV01_ROOT_CLIENT.0, Status::INSUFFICIENT_RESOURCES)]);
    let (fake, _) = kernel(Troubles {
        statuses,
        ..one_gpu()
    });
    let error = text(fake.driver());
    assert!(
        error.contains("NV01_ROOT_CLIENT failed: NV_ERR_INSUFFICIENT_RESOURCES (0x1a)"),
        "{error}"
    );
    assert_eq!(fake.open_nodes(), 0);
}

#[test]
fn memory_that_is_not_there_is_its_own_error() {
    let statuses = HashMap::from([
        (NV01_MEMORY_LOCAL_USER.0, Status::NO_MEMORY),
        (NV01_MEMORY_SYSTEM.0, Status::NO_MEMORY),
        (FERMI_VASPACE_A.0, Status::NO_MEMORY),
        (u32::from(rm::NV_ESC_RM_ALLOC_MEMORY), Status::NO_MEMORY),
        (u32::from(rm::NV_ESC_RM_MAP_MEMORY_DMA), Status::NO_MEMORY),
    ]);
    let (fake, _) = kernel(Troubles {
        statuses,
        ..one_gpu()
    });
    let driver = fake.driver().unwrap();
    let mut asked = rm::MemoryAlloc {
        size: 0x5000.into(),
        ..Default::default()
    };
    for (class, memory) in [
        (NV01_MEMORY_LOCAL_USER, "GPU memory"),
        (NV01_MEMORY_SYSTEM, "host memory"),
    ] {
        let error = driver::alloc(&driver, Handle(1), class, &mut asked).unwrap_err();
        assert!(
            matches!(error, Error::OutOfMemory { what, bytes: 0x5000 } if what == memory),
            "{error:?}"
        );
    }
    let error = text(driver::alloc(
        &driver,
        Handle(1),
        FERMI_VASPACE_A,
        &mut rm::VaSpaceAlloc::default(),
    ));
    assert!(
        error.contains("NV_ERR_NO_MEMORY (0x51); the driver is out of memory"),
        "{error}"
    );
    // SAFETY: there is no GPU behind the made-up kernel.
    let error = unsafe { driver.register_pages(Handle(1), NonNull::dangling(), 0x2000) };
    assert!(
        matches!(error, Err(Error::OutOfMemory { bytes: 0x2000, .. })),
        "{error:?}"
    );
    // SAFETY: nothing is registered.
    let error = unsafe { driver.register_pages(Handle(1), NonNull::dangling(), 0) };
    assert_eq!(text(error), "no bytes to register");
    let error = text(driver.map_dma(&dma(0)));
    assert!(
        error.contains("mapping 0x1000 bytes at 0x200000 for the GPU"),
        "{error}"
    );
    assert!(error.contains("another mapping"), "{error}");
}

fn dma(flags: u32) -> MapDma {
    MapDma {
        device: Handle(1),
        virtual_memory: Handle(2),
        memory: Handle(3),
        offset: 0,
        length: 0x1000,
        flags,
        va: GpuVa(0x20_0000),
    }
}

#[test]
fn a_gpu_mapping_that_lands_elsewhere_is_undone() {
    let (fake, troubles) = kernel(Troubles {
        moved: 0x1000,
        ..one_gpu()
    });
    let driver = fake.driver().unwrap();
    let error = text(driver.map_dma(&dma(flags::map_dma::dma_offset_fixed::TRUE)));
    assert!(error.ends_with("the driver put it at 0x201000"), "{error}");
    assert_eq!(
        troubles.lock().unwrap().seen.last(),
        Some(&rm::NV_ESC_RM_UNMAP_MEMORY_DMA)
    );
    // Where the driver may choose, it may.
    driver.map_dma(&dma(0)).unwrap();
}

#[test]
fn a_cpu_mapping_that_fails_is_undone() {
    let (fake, troubles) = kernel(one_gpu());
    let driver = fake.driver().unwrap();
    fake.machine().unmappable = true;
    let error = text(driver.map_cpu(&PAGE));
    assert!(error.starts_with("mmap /dev/nvidiactl: ENOMEM"), "{error}");
    assert_eq!(
        troubles.lock().unwrap().seen.last(),
        Some(&rm::NV_ESC_RM_UNMAP_MEMORY)
    );
    assert_eq!(fake.open_nodes(), 2);
    assert_eq!(
        text(driver.map_cpu(&MapCpu { length: 0, ..PAGE })),
        "a CPU mapping of 0 bytes"
    );
}

#[test]
fn mappings_that_cannot_be_written_are_refused() {
    let (fake, _) = kernel(one_gpu());
    let driver = fake.driver().unwrap();
    let access = |flags| driver.map_cpu(&MapCpu { flags, ..PAGE });
    assert!(text(access(flags::map_cpu::access::READ_ONLY)).contains("cannot be written"));
    access(flags::map_cpu::access::WRITE_ONLY).unwrap();
    access(flags::map_cpu::caching_type::WRITECOMBINED).unwrap();
}

#[test]
fn statuses_name_the_call_and_what_to_do() {
    let boost = rm::PerfBoost::default();
    let command = <rm::PerfBoost as rm::Control>::COMMAND;
    for (status, words) in [
        (
            Status::INSUFFICIENT_PERMISSIONS,
            "a sandbox may refuse this call",
        ),
        (Status::GPU_IS_LOST, "needs a reset"),
        (Status::INVALID_ARGUMENT, "NV_ERR_INVALID_ARGUMENT (0x1f)"),
    ] {
        let statuses = HashMap::from([(command, status)]);
        let (fake, _) = kernel(Troubles {
            statuses,
            ..one_gpu()
        });
        let driver = fake.driver().unwrap();
        let error = text(driver::control(&driver, Handle(1), &mut boost.to_owned()));
        assert!(
            error.starts_with("NV2080_CTRL_CMD_PERF_BOOST failed: "),
            "{error}"
        );
        assert!(error.contains(words), "{error}");
    }
    let statuses = HashMap::from([(command, Status::WARN_NOTHING_TO_DO)]);
    let (fake, _) = kernel(Troubles {
        statuses,
        ..one_gpu()
    });
    let driver = fake.driver().unwrap();
    driver::control(&driver, Handle(1), &mut boost.to_owned()).unwrap();
}

#[test]
fn parameters_of_another_class_are_refused_before_the_kernel_sees_them() {
    let (fake, troubles) = kernel(one_gpu());
    let driver = fake.driver().unwrap();
    let calls = troubles.lock().unwrap().seen.len();
    let mut params = rm::MemoryAlloc::default();
    let error = driver::alloc(
        &driver,
        Handle(1),
        NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
        &mut params,
    );
    assert_eq!(
        text(error),
        "these are not the parameters of objects of class 0x71"
    );
    assert_eq!(troubles.lock().unwrap().seen.len(), calls);
}

#[test]
fn a_list_of_classes_has_an_end() {
    let (fake, _) = kernel(Troubles {
        classes: u32::MAX,
        ..one_gpu()
    });
    let error = text(fake.driver().unwrap().class_list(Handle(1)));
    assert_eq!(error, "the driver lists 4294967295 classes");
}

#[test]
fn uvm_failures_name_the_call() {
    let (fake, troubles) = kernel(one_gpu());
    let driver = fake.driver().unwrap();
    let mut params = uvm::ValidateVaRange::default();
    // SAFETY: none of the structures holds a pointer.
    let call = |command, bytes: &mut [u8]| unsafe { driver.uvm_raw(command, bytes) };
    assert_eq!(fake.open_nodes(), 2);
    call(uvm::ValidateVaRange::COMMAND, params.as_mut_bytes()).unwrap();
    assert_eq!(fake.open_nodes(), 4);
    troubles.lock().unwrap().uvm_status = Status::INVALID_ADDRESS.0;
    let error = text(call(uvm::ValidateVaRange::COMMAND, params.as_mut_bytes()));
    assert_eq!(
        error,
        "UVM_VALIDATE_VA_RANGE failed: NV_ERR_INVALID_ADDRESS (0x1e)"
    );
    assert!(
        text(call(uvm::ValidateVaRange::COMMAND, &mut [0; 3]))
            .contains("at driver 580.159.04, not 3")
    );
    assert!(text(call(0x7fff, &mut [0; 3])).contains("0x7fff is not described"));

    let (fake, _) = kernel(one_gpu());
    fake.machine()
        .refused
        .insert(UVM_NODE.into(), Errno::ENOENT);
    let driver = fake.driver().unwrap();
    let mut params = uvm::ValidateVaRange::default();
    // SAFETY: none of the structures holds a pointer.
    let error =
        text(unsafe { driver.uvm_raw(uvm::ValidateVaRange::COMMAND, params.as_mut_bytes()) });
    assert!(error.contains("modprobe nvidia-uvm"), "{error}");

    // A UVM that does not start is closed again, and may start later.
    let (fake, troubles) = kernel(Troubles {
        uvm_status: Status::BUSY_RETRY.0,
        ..one_gpu()
    });
    let driver = fake.driver().unwrap();
    // SAFETY: none of the structures holds a pointer.
    let mut call =
        || unsafe { driver.uvm_raw(uvm::ValidateVaRange::COMMAND, params.as_mut_bytes()) };
    assert!(text(call()).starts_with("UVM_INITIALIZE failed"));
    assert_eq!(fake.open_nodes(), 2);
    troubles.lock().unwrap().uvm_status = 0;
    call().unwrap();
}

#[test]
fn a_thousand_opens_leave_nothing_behind() {
    let (fake, troubles) = kernel(one_gpu());
    for round in 0..1000 {
        let driver = fake.driver().unwrap();
        let mapping = driver
            .map_cpu(&MapCpu {
                system: round % 2 == 0,
                ..PAGE
            })
            .unwrap();
        let mut params = uvm::ValidateVaRange::default();
        // SAFETY: the structure holds no pointer.
        unsafe { driver.uvm_raw(uvm::ValidateVaRange::COMMAND, params.as_mut_bytes()) }.unwrap();
        assert_eq!((fake.open_nodes(), fake.mappings()), (4, 1));
        // A mapping outlives its driver.
        drop(driver);
        mapping.write_u32(0, round);
        assert_eq!(mapping.read_u32(0), round);
    }
    assert_eq!((fake.open_nodes(), fake.mappings()), (0, 0));
    let freed = troubles
        .lock()
        .unwrap()
        .seen
        .iter()
        .filter(|escape| **escape == rm::NV_ESC_RM_FREE)
        .count();
    assert_eq!(freed, 1000);
    assert!(fake.machine().opens >= 5000);
}
