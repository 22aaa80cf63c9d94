/**
 * The position that a camera has written into a picture, as EXIF of a JPEG or HEIC file.
 * It is read in the browser, and no picture is sent with it.
 */
import type { Position } from '../map/address';

/** Begins the EXIF data of both formats; a TIFF file follows. */
const MARK = [...'Exif\0\0'].map((letter) => letter.charCodeAt(0));
const LITTLE_ENDIAN = 0x4949;
const BIG_ENDIAN = 0x4d4d;
const ENTRY_BYTES = 12;

const GPS = 0x8825;
const [LATITUDE_REF, LATITUDE, LONGITUDE_REF, LONGITUDE] = [1, 2, 3, 4];

/** The offsets of what the picture says of its position. */
interface Found {
  position: Position;
  /** Where degrees, minutes and seconds are, as fractions. */
  offsets: number[];
}

/** The position of a picture; undefined where it has none that can be read. */
export async function positionOf(picture: Blob): Promise<Position | undefined> {
  return find(new DataView(await picture.arrayBuffer()))?.position;
}

/** The same picture with zeros in the place of its position, for one that cannot be drawn again without. */
export async function withoutPosition(picture: Blob): Promise<Blob> {
  const data = new DataView(await picture.arrayBuffer());
  const offsets = find(data)?.offsets;
  if (!offsets) return picture;
  for (const offset of offsets) new Uint8Array(data.buffer).fill(0, offset, offset + 3 * 8);
  return new Blob([data.buffer], { type: picture.type });
}

function find(data: DataView): Found | undefined {
  try {
    const start = tiffOf(data);
    return start === undefined ? undefined : read(data, start);
  } catch (error) {
    if (error instanceof RangeError) return undefined; // the file ends too early
    throw error;
  }
}

function tiffOf(data: DataView): number | undefined {
  const bytes = new Uint8Array(data.buffer);
  for (let at = bytes.indexOf(MARK[0]!); at >= 0; at = bytes.indexOf(MARK[0]!, at + 1)) {
    const start = at + MARK.length;
    if (MARK.every((byte, i) => bytes[at + i] === byte) && [LITTLE_ENDIAN, BIG_ENDIAN].includes(data.getUint16(start))) return start;
  }
  return undefined;
}

function read(data: DataView, start: number): Found | undefined {
  const little = data.getUint16(start) === LITTLE_ENDIAN;
  const number = (at: number) => data.getUint32(at, little);
  /** The offsets of the values in a directory, by their tags. */
  const directory = (at: number) => {
    const values = new Map<number, number>();
    for (let i = 0; i < data.getUint16(at, little); i++) {
      const entry = at + 2 + i * ENTRY_BYTES;
      values.set(data.getUint16(entry, little), entry + 8);
    }
    return values;
  };
  const gps = directory(start + number(start + 4)).get(GPS);
  if (gps === undefined) return undefined;
  const values = directory(start + number(gps));
  const offsets: number[] = [];
  const degrees = (tag: number, reference: number, negative: string): number => {
    const [value, side] = [values.get(tag), values.get(reference)];
    if (value === undefined || side === undefined) return NaN;
    const at = start + number(value);
    offsets.push(at);
    const [whole, minutes, seconds] = [0, 8, 16].map((i) => number(at + i) / number(at + i + 4));
    // Cameras without seconds write 0/0.
    const size = whole! + minutes! / 60 + (seconds || 0) / 3600;
    return String.fromCharCode(data.getUint8(side)) === negative ? -size : size;
  };
  const latitude = degrees(LATITUDE, LATITUDE_REF, 'S');
  const longitude = degrees(LONGITUDE, LONGITUDE_REF, 'W');
  // Cameras without a fix write zeros.
  const known = Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 && (latitude !== 0 || longitude !== 0);
  return known ? { position: { latitude, longitude }, offsets } : undefined;
}
