/** The map's code and tiles are larger than all of this folder may be. The page shows places in words, as in a browser without WebGL. */
export default '';

export function createPlot(): never {
  throw new Error('there is no map in this folder');
}
