//! Writes a picture with a palette as PNG (ISO/IEC 15948), for embedding into SVG.

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::Write;

/// Encodes `pixels` (row by row, indices into `palette`) with 8 bits per pixel.
pub(super) fn encode(width: usize, pixels: &[u8], palette: &[[u8; 3]]) -> std::io::Result<Vec<u8>> {
    let height = pixels.len() / width.max(1);
    let mut header = Vec::new();
    header.extend((width as u32).to_be_bytes());
    header.extend((height as u32).to_be_bytes());
    // Depth 8, palette, deflate, filter method 0, not interlaced.
    header.extend([8, 3, 0, 0, 0]);
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::best());
    for line in pixels.chunks(width.max(1)) {
        deflate.write_all(&[0])?;
        deflate.write_all(line)?;
    }
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in
        [(b"IHDR", header), (b"PLTE", palette.concat()), (b"IDAT", deflate.finish()?), (b"IEND", Vec::new())]
    {
        let mut crc = Crc::new();
        crc.update(kind);
        crc.update(&data);
        png.extend((data.len() as u32).to_be_bytes());
        png.extend(kind);
        png.extend(data);
        png.extend(crc.sum().to_be_bytes());
    }
    Ok(png)
}

/// Base64 (RFC 4648).
pub(super) fn base64(data: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(data.len().div_ceil(3) * 4);
    for group in data.chunks(3) {
        let bits =
            group.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_matches_the_rfc() {
        for (data, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(data.as_bytes()), text);
        }
    }

    #[test]
    fn png_holds_its_pixels() {
        let pixels = [0, 1, 1, 0, 1, 0];
        let png = encode(3, &pixels, &[[255; 3], [0; 3]]).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!((png[19], png[23]), (3, 2));
        let start = png.windows(4).position(|w| w == b"IDAT").unwrap() + 4;
        let mut raw = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&png[start..]), &mut raw).unwrap();
        assert_eq!(raw, [0, 0, 1, 1, 0, 0, 1, 0]);
    }
}
