//! What counts submissions and copies passes 2^32 unharmed: streams that begin short of it.

use nv_sim::Chip;

use super::*;

#[test]
fn counters_pass_four_billion() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cubins/k");
    // The copy engine of the first has payloads of one word.
    for (chip, sm) in [(Chip::Ga100, 80), (Chip::Ga102, 86), (Chip::Gh100, 90)] {
        let cubin = std::fs::read(root.join(format!("k.sm_{sm}.cubin"))).unwrap();
        let driver = crate::driver::sim::open(chip).unwrap();
        let context = Context::new(Arc::new(driver), &Options::default()).unwrap();
        let inner = context.inner();
        let vadd = context.load(&cubin).unwrap().function("vadd").unwrap();
        let group = Group::new(&inner.objects, &inner.space, &inner.doorbell).unwrap();
        let group = Arc::new(group);
        let entries = u64::from(crate::channel::RING_ENTRIES);
        let first = (1 << 32) - entries;
        let old = StreamInner::starting_at(inner, &group, 0, first, u32::MAX - 1500).unwrap();
        let old = Stream::new(context.clone(), Arc::new(old));
        let other = context.stream().unwrap();

        let n = 32;
        let (a, b) = (
            context.alloc::<f32>(n).unwrap(),
            context.alloc::<f32>(n).unwrap(),
        );
        old.fill(&a, 1.0).unwrap();
        old.fill(&b, 0.0).unwrap();
        // Each round depends on what all those before did: 2 submissions of either engine, the ring twice.
        let rounds = entries as usize / 2;
        for round in 0..rounds {
            let launch = old.launch(&vadd).grid(1).block(32);
            let launch = launch.arg(&a).arg(&b).arg(&b).arg(n as i32);
            launch.submit().unwrap();
            let half = n / 2;
            old.copy(&a.slice(..half).unwrap(), &a.slice(half..).unwrap())
                .unwrap();
            if round % 512 == 0 {
                // Another stream waits for this one on the GPU, and the CPU for both.
                other.wait_for(&old.event()).unwrap();
                let found = other.download(&b).unwrap();
                assert_eq!(
                    found.wait().unwrap(),
                    vec![round as f32 + 1.0; n],
                    "{chip:?}"
                );
                assert!(old.event().is_reached());
            }
        }
        let sum = old.download(&b).unwrap().wait().unwrap();
        assert_eq!(sum, vec![rounds as f32; n], "{chip:?}");
        assert!(old.inner().submitted() > 1 << 32);
        assert_eq!(old.inner().completed(), old.inner().submitted());
        // What was given up is freed by those numbers too.
        drop((a, b));
        context.synchronize().unwrap();
        assert_eq!(inner.retired.len(), 0);
    }
}
