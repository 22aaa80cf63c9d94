/** The build of MapLibre whose worker is a file, as the page's policy wants it. */
declare module 'maplibre-gl/dist/maplibre-gl-csp' {
  import maplibregl from 'maplibre-gl';
  export default maplibregl;
  export * from 'maplibre-gl';
}
