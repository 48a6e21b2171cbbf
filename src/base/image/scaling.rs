//! Makes pictures as small as every server takes them.

use std::borrow::Cow;
use std::io::Cursor;

use image_codecs::codecs::jpeg::JpegEncoder;
use image_codecs::{
    DynamicImage, GenericImageView, ImageDecoder, ImageFormat, ImageReader, ImageResult, Limits, Rgba, RgbaImage,
};

/// The longest side in pixels: Anthropic refuses more where a request has over 20 pictures, and takes 8,000 otherwise; others
/// scale to about as much themselves.
const MOST_SIDE: u32 = 2000;
/// The shortest side to which a picture is scaled for its bytes.
const LEAST_SIDE: u32 = 250;
/// The most memory of a picture that is unpacked.
const MOST_MEMORY: u64 = 512 * 1024 * 1024;
/// Of JPEG, in percent: what cameras and screenshots use.
const QUALITY: u8 = 85;

/// A picture with sides of at most 2,000 pixels and this many bytes: as it is if it is one, else scaled, upright, without its
/// metadata. PNG stays PNG if it fits.
///
/// # Errors
/// The end of a sentence: it is too large to unpack, or broken where it had to be scaled.
pub(super) fn shrink(bytes: &[u8], most_bytes: u64) -> Result<Cow<'_, [u8]>, String> {
    let fits = |bytes: &[u8]| bytes.len() as u64 <= most_bytes;
    let open = || ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let sides = open().ok().and_then(|reader| reader.into_dimensions().ok());
    // A server may read what this program does not.
    let is_small = sides.is_none_or(|(width, height)| width.max(height) <= MOST_SIDE);
    if is_small && fits(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let (mut picture, format) =
        decode(bytes).map_err(|error| format!("is too large, and cannot be scaled: {error}"))?;
    let (width, height) = picture.dimensions();
    let mut side = width.max(height).min(MOST_SIDE);
    let mut written = None;
    while side >= LEAST_SIDE.min(width.max(height)) {
        if picture.width().max(picture.height()) > side {
            picture = picture.thumbnail(side, side);
        }
        let png = (format == ImageFormat::Png).then(|| encode(&picture, ImageFormat::Png)).transpose();
        let small = match png.map_err(|error| error.to_string())?.filter(|png| fits(png)) {
            Some(png) => png,
            None => encode(&picture, ImageFormat::Jpeg).map_err(|error| format!("cannot be scaled: {error}"))?,
        };
        if fits(&small) {
            written = Some(small);
            break;
        }
        side = side / 4 * 3;
    }
    written.map(Cow::Owned).ok_or_else(|| "is too large, however small it is scaled".to_owned())
}

/// The pixels, upright.
fn decode(bytes: &[u8]) -> ImageResult<(DynamicImage, ImageFormat)> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    let format = reader.format().unwrap_or(ImageFormat::Png);
    let mut decoder = reader.into_decoder()?;
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok((picture, format))
}

fn encode(picture: &DynamicImage, format: ImageFormat) -> ImageResult<Vec<u8>> {
    let mut bytes = Vec::new();
    if format == ImageFormat::Png {
        picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
    } else {
        // JPEG has no transparency: what is behind is white, as on a page.
        let mut page = RgbaImage::from_pixel(picture.width(), picture.height(), Rgba([255; 4]));
        image_codecs::imageops::overlay(&mut page, picture, 0, 0);
        JpegEncoder::new_with_quality(&mut bytes, QUALITY)
            .encode_image(&DynamicImage::ImageRgba8(page).to_rgb8())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture that does not pack well.
    fn noise(width: u32, height: u32) -> DynamicImage {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        DynamicImage::ImageRgba8(RgbaImage::from_fn(width, height, |_, _| Rgba([next(), next(), next(), 255])))
    }

    /// Of a chunk of PNG (its annex D).
    fn checksum(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1)))
        })
    }

    fn sides(bytes: &[u8]) -> (u32, u32, ImageFormat) {
        let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().expect("it is read");
        let format = reader.format().expect("a known format");
        let (width, height) = reader.into_dimensions().expect("a picture");
        (width, height, format)
    }

    #[test]
    fn what_fits_stays_as_it_is_and_the_rest_is_scaled() {
        let png =
            |width, height| encode(&DynamicImage::new_rgba8(width, height), ImageFormat::Png).expect("written");
        let small = png(300, 200);
        assert!(matches!(shrink(&small, 1 << 20), Ok(Cow::Borrowed(bytes)) if bytes == small));
        let wide = png(4000, 1000);
        let scaled = shrink(&wide, 1 << 20).expect("scaled");
        assert_eq!(sides(&scaled), (2000, 500, ImageFormat::Png));
        // Too many bytes for a PNG: a JPEG, and a smaller one if need be.
        let heavy = encode(&noise(700, 700), ImageFormat::Png).expect("written");
        for (most, side) in [(heavy.len() - 1, 700), (150_000, 294)] {
            let shrunk = shrink(&heavy, most as u64).expect("scaled");
            assert!(shrunk.len() <= most, "{} bytes", shrunk.len());
            assert_eq!(sides(&shrunk), (side, side, ImageFormat::Jpeg));
        }
        assert!(shrink(&heavy, 100).is_err_and(|why| why.contains("however small")));
    }

    #[test]
    fn a_picture_that_lies_about_its_size_is_refused_and_one_that_cannot_be_read_is_left_to_the_server() {
        let mut huge = encode(&DynamicImage::new_rgb8(10, 10), ImageFormat::Png).expect("written");
        huge[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
        let sum = checksum(&huge[12..29]).to_be_bytes();
        huge[29..33].copy_from_slice(&sum);
        assert!(shrink(&huge, 1 << 20).is_err_and(|why| why.contains("cannot be scaled")));
        let broken = b"\x89PNG\r\n\x1a\nxxxx";
        assert!(matches!(shrink(broken, 1 << 20), Ok(Cow::Borrowed(_))));
    }
}
