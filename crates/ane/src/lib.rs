//! The device interface and its back ends: emulator, null, fault.
