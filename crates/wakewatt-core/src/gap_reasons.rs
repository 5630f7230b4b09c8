//! Why nothing could be read, in the language in force.
//!
//! A gap keeps its reason in English from the moment of reading: it stands in run files and host files. The reasons that this
//! project words itself are few and known; they are looked up here where a person reads them. What the kernel, a library or a
//! parser said with a text of the machine in it stays as it was said.

use wakewatt_words::word;

/// The same reason in the language in force; none where it is nobody's of this project.
pub(crate) fn told(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "not read" => word!("not read"),
        "not recorded" => word!("not recorded"),
        "not in this tree" => word!("not in this tree"),
        "no imported text says it" => word!("no imported text says it"),
        "no such file" => word!("no such file"),
        "no process is listed" => word!("no process is listed"),
        "permission denied" => word!("permission denied"),
        "Permission denied" => word!("Permission denied"),
        "Input/output error" => word!("Input/output error"),
        "not text" => word!("not text"),
        "empty" => word!("empty"),
        "cut off" => word!("cut off"),
        "negative limit" => word!("negative limit"),
        "no time has passed" => word!("no time has passed"),
        "no SMBIOS anchor" => word!("no SMBIOS anchor"),
        "the list of flags may be cut short" => word!("the list of flags may be cut short"),
        "no CPU flags in it" => word!("no CPU flags in it"),
        "no such queue" => word!("no such queue"),
        "a guest: a hypervisor's emulation says nothing of the hardware" => {
            word!("a guest: a hypervisor's emulation says nothing of the hardware")
        }
        "this CPU has no such register" => word!("this CPU has no such register"),
        "arm64 processors have no flag for it" => word!("arm64 processors have no flag for it"),
        "the driver does not know the speed" => word!("the driver does not know the speed"),
        "the kernel does not know it (-1)" => word!("the kernel does not know it (-1)"),
        "no CPU could be found: /sys and /proc are both masked" => {
            word!("no CPU could be found: /sys and /proc are both masked")
        }
        _ => return None,
    })
}
