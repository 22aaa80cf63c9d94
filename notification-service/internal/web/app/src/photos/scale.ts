/** Makes a picture small enough for a slow line, in the browser. */

/** The longest side that is sent: the service keeps no larger one. */
const LONGEST = 2048;
const QUALITY = 0.85;

/**
 * The picture upright, at most 2048 pixels long, as a JPEG, turned by so many
 * quarters to the right. A file that the browser cannot draw is sent as it is, without
 * its position: the service says what is wrong with it.
 */
export async function scaled(file: Blob, quarters = 0): Promise<Blob> {
  let drawn: ImageBitmap;
  try {
    drawn = await createImageBitmap(file, { imageOrientation: 'from-image' });
  } catch {
    return bare(file);
  }
  const scale = Math.min(1, LONGEST / Math.max(drawn.width, drawn.height));
  const [width, height] = [Math.max(1, Math.round(drawn.width * scale)), Math.max(1, Math.round(drawn.height * scale))];
  const canvas = document.createElement('canvas');
  const sideways = quarters % 2 === 1;
  canvas.width = sideways ? height : width;
  canvas.height = sideways ? width : height;
  const context = canvas.getContext('2d');
  if (!context) return bare(file);
  context.fillStyle = '#fff'; // of what is transparent; a JPEG would make it black
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.translate(canvas.width / 2, canvas.height / 2);
  context.rotate((quarters * Math.PI) / 2);
  context.drawImage(drawn, -width / 2, -height / 2, width, height);
  drawn.close();
  const small = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/jpeg', QUALITY));
  return small ?? bare(file);
}

const bare = async (file: Blob) => (await import('./exif')).withoutPosition(file);
