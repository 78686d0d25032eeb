//! Device nodes: whether they open, and what to do when they do not.

use std::fmt;
use std::path::Path;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

/// How a device node answers an open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NodeStatus {
    /// It opens.
    Opens,
    /// `ENOENT`: there is no such node.
    Missing,
    /// `EACCES`: its permissions forbid it.
    Forbidden,
    /// `EPERM`: a device rule of a container forbids it.
    Ruled,
    /// `ENXIO` or `ENODEV`: no driver answers behind it.
    Dead,
    /// Any other error.
    Fails(Errno),
}

impl NodeStatus {
    /// What the result of an open says.
    #[must_use]
    pub fn of(opened: Result<(), Errno>) -> Self {
        match opened {
            Ok(()) => Self::Opens,
            Err(Errno::ENOENT) => Self::Missing,
            Err(Errno::EACCES) => Self::Forbidden,
            Err(Errno::EPERM) => Self::Ruled,
            Err(Errno::ENXIO | Errno::ENODEV) => Self::Dead,
            Err(errno) => Self::Fails(errno),
        }
    }

    /// What its permissions say, without opening it: a device rule or a dead driver shows only on opening.
    #[must_use]
    pub fn glance(path: &Path) -> Self {
        Self::of(access(path, AccessFlags::R_OK | AccessFlags::W_OK))
    }
}

impl fmt::Display for NodeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opens => f.write_str("opens"),
            Self::Missing => f.write_str("is missing (ENOENT)"),
            Self::Forbidden => f.write_str("is forbidden by its permissions (EACCES)"),
            Self::Ruled => f.write_str("is forbidden by a device rule (EPERM)"),
            Self::Dead => f.write_str("has no driver behind it (ENXIO)"),
            Self::Fails(errno) => write!(f, "fails: {errno}"),
        }
    }
}

/// What to do when `operation` on a device node failed.
#[must_use]
pub fn remedy(path: &Path, operation: &str, errno: Errno) -> String {
    let uvm = path.ends_with("nvidia-uvm");
    let control = path.ends_with("nvidiactl");
    let node = path.display();
    match (errno, operation) {
        (Errno::ENOENT, _) if uvm => {
            "load the UVM module (`modprobe nvidia-uvm`, `nvidia-modprobe -u -c 0`), or map memory without UVM"
                .into()
        }
        (Errno::ENOENT, _) if control => {
            "load the kernel module (`modprobe nvidia`) and make its nodes (`nvidia-modprobe -c 0`); in a \
             container, pass the GPU in (`--gpus all`)"
                .into()
        }
        (Errno::ENOENT, _) => {
            format!("make the node (`nvidia-modprobe -c N`), or pass {node} into the container")
        }
        (Errno::EACCES, "open") => {
            format!("the node's permissions forbid it: `ls -l {node}` shows whose group to join")
        }
        (Errno::EPERM, "open") => {
            format!("the container's device rules forbid it: start it with `--gpus all` or `--device {node}`")
        }
        (Errno::EACCES | Errno::EPERM, _) => {
            "a sandbox refuses this call: see `nv doctor` for what it allows".into()
        }
        (Errno::ENXIO | Errno::ENODEV, _) => {
            "no driver answers behind the node: reload the kernel module, and see `dmesg` for a GPU that fell \
             off the bus"
                .into()
        }
        (Errno::EIO, _) => "the GPU did not come up: see `dmesg` for lines of NVRM".into(),
        (Errno::EMFILE | Errno::ENFILE, _) => {
            "too many files are open: raise the limit (`ulimit -n`)".into()
        }
        (Errno::ENOMEM, _) => "the machine is out of memory, or of address space".into(),
        (Errno::EINVAL, _) => {
            "the driver does not know this form of the call: its release may be one that is not supported"
                .into()
        }
        (Errno::ENOTTY, _) => format!("{node} is not a node of the NVIDIA driver"),
        _ => "see `nv doctor`".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_tell_the_causes_apart() {
        let of = |errno| NodeStatus::of(Err(errno));
        assert_eq!(NodeStatus::of(Ok(())), NodeStatus::Opens);
        assert_eq!(of(Errno::ENOENT), NodeStatus::Missing);
        assert_eq!(of(Errno::EACCES), NodeStatus::Forbidden);
        assert_eq!(of(Errno::EPERM), NodeStatus::Ruled);
        assert_eq!(of(Errno::ENXIO), NodeStatus::Dead);
        assert_eq!(of(Errno::ENODEV), NodeStatus::Dead);
        assert_eq!(of(Errno::EBUSY), NodeStatus::Fails(Errno::EBUSY));
    }

    #[test]
    fn a_glance_opens_nothing() {
        assert_eq!(
            NodeStatus::glance(Path::new("/dev/null")),
            NodeStatus::Opens
        );
        assert_eq!(
            NodeStatus::glance(Path::new("/dev/nowhere")),
            NodeStatus::Missing
        );
    }

    #[test]
    fn each_cause_has_its_own_remedy() {
        let causes = [
            Errno::ENOENT,
            Errno::EACCES,
            Errno::EPERM,
            Errno::ENXIO,
            Errno::EIO,
            Errno::EMFILE,
        ];
        let path = Path::new("/dev/nvidia0");
        let mut remedies: Vec<_> = causes
            .into_iter()
            .map(|errno| remedy(path, "open", errno))
            .collect();
        remedies.push(remedy(Path::new("/dev/nvidiactl"), "open", Errno::ENOENT));
        remedies.push(remedy(Path::new("/dev/nvidia-uvm"), "open", Errno::ENOENT));
        remedies.push(remedy(path, "NV_ESC_RM_CONTROL", Errno::EPERM));
        let count = remedies.len();
        remedies.sort();
        remedies.dedup();
        assert_eq!(remedies.len(), count);
        assert!(!remedies.iter().any(|remedy| remedy == "see `nv doctor`"));
    }
}
