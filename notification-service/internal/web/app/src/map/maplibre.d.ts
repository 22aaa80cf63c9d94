/** MapLibre with its worker in a file, as the page's policy requires; maplibre.js makes it. */
declare module 'virtual:maplibre' {
  import maplibregl from 'maplibre-gl';
  export default maplibregl;
}

/** The address of the largest part of it; empty while one works on the page. */
declare module 'virtual:maplibre-shared' {
  const address: string;
  export default address;
}
