import { expect, test } from 'vitest';

import { positionOf, withoutPosition } from './exif';

type Fraction = [number, number];

/** A JPEG or HEIC file as a camera writes it, with a position or with what is in its place. */
function picture(
  latitude: [string, ...Fraction[]],
  longitude: [string, ...Fraction[]],
  little: boolean,
  before = 'ff d8 ff e1 00 ca',
): Blob {
  const tiff = new DataView(new ArrayBuffer(8 + 18 + 54 + 48));
  const [directory, gps, fractions] = [8, 26, 80];
  const entry = (at: number, tag: number, type: number, count: number) => {
    tiff.setUint16(at, tag, little);
    tiff.setUint16(at + 2, type, little);
    tiff.setUint32(at + 4, count, little);
    return at + 8;
  };
  tiff.setUint16(0, little ? 0x4949 : 0x4d4d);
  tiff.setUint16(2, 42, little);
  tiff.setUint32(4, directory, little);
  tiff.setUint16(directory, 1, little);
  tiff.setUint32(entry(directory + 2, 0x8825, 4, 1), gps, little);
  tiff.setUint16(gps, 4, little);
  [latitude, longitude].forEach(([side, ...values], i) => {
    tiff.setUint8(entry(gps + 2 + i * 24, 1 + i * 2, 2, 2), side.charCodeAt(0));
    tiff.setUint32(entry(gps + 14 + i * 24, 2 + i * 2, 5, 3), fractions + i * 24, little);
    values.flat().forEach((value, j) => tiff.setUint32(fractions + i * 24 + j * 4, value, little));
  });
  const head = before.split(' ').map((byte) => parseInt(byte, 16));
  return new Blob([Uint8Array.from(head), 'Exif\0\0', tiff.buffer, 'E picture'], { type: 'image/jpeg' });
}

const south: [string, ...Fraction[]] = ['S', [6, 1], [35, 1], [3516, 100]];
const east: [string, ...Fraction[]] = ['E', [106, 1], [47, 1], [4848, 100]];

test.each([
  ['a JPEG of a telephone', picture(south, east, false), [-6.5931, 106.7968]],
  ['one in the other order of bytes', picture(south, east, true), [-6.5931, 106.7968]],
  ['a HEIC file', picture(south, east, false, '66 74 79 70 68 65 69 63 45 78 69 66 00 00 00 06'), [-6.5931, 106.7968]],
  ['one with minutes alone', picture(['N', [48, 1], [305, 10], [0, 0]], ['W', [11, 1], [30, 1], [0, 1]], false), [48.50833, -11.5]],
])('%s says where it was taken', async (_, file, [latitude, longitude]) => {
  const found = await positionOf(file);
  expect(found?.latitude).toBeCloseTo(latitude!, 4);
  expect(found?.longitude).toBeCloseTo(longitude!, 4);
});

test.each([
  ['a camera without a fix', picture(['N', [0, 1], [0, 1], [0, 1]], ['E', [0, 1], [0, 1], [0, 1]], false)],
  ['fractions of nothing', picture(['N', [0, 0], [0, 0], [0, 0]], east, false)],
  ['a place that is none', picture(['N', [91, 1], [0, 1], [0, 1]], east, false)],
  ['a file that ends', picture(south, east, false).slice(0, 60)],
  ['another file', new Blob(['Exif\0\0'])],
  ['an empty file', new Blob([])],
])('%s says nothing', async (_, file) => {
  expect(await positionOf(file)).toBeUndefined();
});

test('what is sent undrawn has no position, and is the same otherwise', async () => {
  const [before, after] = [picture(south, east, false), await withoutPosition(picture(south, east, false))];
  expect([await positionOf(after), after.size, after.type]).toEqual([undefined, before.size, before.type]);
  const [a, b] = await Promise.all([before, after].map(async (file) => new Uint8Array(await file.arrayBuffer())));
  const changed = [...a!.keys()].filter((i) => a![i] !== b![i]);
  expect([changed[0]! >= before.size - 9 - 48, changed.at(-1)! < before.size - 9]).toEqual([true, true]);
});
