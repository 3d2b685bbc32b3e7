//! `inet` and `cidr`: family, length of the mask, whether it is a `cidr`, length of the address, the address.

use std::fmt::Write;
use std::net::IpAddr;

const V4: u8 = 2;
const V6: u8 = 3;

pub(super) fn put(text: &str, is_cidr: bool, out: &mut Vec<u8>) -> Option<()> {
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let (family, bytes) = match address.parse().ok()? {
        IpAddr::V4(address) => (V4, address.octets().to_vec()),
        IpAddr::V6(address) => (V6, address.octets().to_vec()),
    };
    let bits = bytes.len() as u8 * 8;
    let mask = mask.unwrap_or(bits);
    if mask > bits {
        return None;
    }
    out.extend([family, mask, u8::from(is_cidr), bytes.len() as u8]);
    out.extend(bytes);
    Some(())
}

pub(super) fn put_text(bytes: &[u8], out: &mut String) -> Option<()> {
    let [_, mask, is_cidr, length, address @ ..] = bytes else { return None };
    if usize::from(*length) != address.len() {
        return None;
    }
    let (address, bits) = match *address {
        [a, b, c, d] => (IpAddr::from([a, b, c, d]), 32),
        _ => (IpAddr::from(<[u8; 16]>::try_from(address).ok()?), 128),
    };
    write!(out, "{address}").ok()?;
    if *mask != bits || *is_cidr == 1 {
        write!(out, "/{mask}").ok()?;
    }
    Some(())
}
