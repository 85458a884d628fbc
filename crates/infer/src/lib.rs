//! Generation and evaluation through the device.
