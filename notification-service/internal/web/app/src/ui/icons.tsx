/** Line drawings of 20 × 20, as wide as the text around them. */
const paths = {
  bell: 'M5 8a5 5 0 0 1 10 0c0 5 2 6 2 6H3s2-1 2-6M8 17a2 2 0 0 0 4 0',
  list: 'M4 5h12M4 10h12M4 15h12',
  map: 'M7.5 4 3 6v10l4.5-2 5 2L17 14V4l-4.5 2zM7.5 4v10M12.5 6v10',
  plus: 'M10 4v12M4 10h12',
  up: 'M10 16V4M5 9l5-5 5 5',
  down: 'M10 4v12M5 11l5 5 5-5',
  close: 'M5 5l10 10M15 5 5 15',
  person: 'M10 10a3 3 0 1 0 0-6 3 3 0 0 0 0 6M4 17c0-3 3-4.5 6-4.5s6 1.5 6 4.5',
  inbox: 'M3 11l2.5-7h9L17 11v5H3zM3 11h4l1 2h4l1-2h4',
  gauge: 'M3.5 15a7.5 7.5 0 1 1 13 0M10 12l3.5-4',
  search: 'M9 14A5 5 0 1 0 9 4a5 5 0 0 0 0 10M13 13l4 4',
  filter: 'M3 5h14M6 10h8M8.500 15h3',
  here: 'M10 2v3M10 15v3M2 10h3M15 10h3M10 14a4 4 0 1 0 0-8 4 4 0 0 0 0 8',
  check: 'M4 10.5l4 4 8-9',
  star: 'M10 3l2.1 4.6 5 .6-3.7 3.4 1 4.9-4.4-2.5-4.4 2.5 1-4.900L2.9 8.200l5-.6z',
  back: 'M16 10H4M9 5l-5 5 5 5',
  share: 'M13 7l-6 3 6 3M15 4a2 2 0 1 0 0 4 2 2 0 0 0 0-4M5 8a2 2 0 1 0 0 4 2 2 0 0 0 0-4M15 12a2 2 0 1 0 0 4 2 2 0 0 0 0-4',
  copy: 'M7 7V4h9v9h-3M4 7h9v9H4z',
  road: 'M6 17 8 3M14 17 12 3M10 4v2M10 9v2M10 14v2',
  lamp: 'M7 17h4M9 17V6c0-3 5-3 5 0M11.500 7h5l-1 3h-3z',
  bin: 'M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11M9 9v5M11 9v5',
  spray: 'M6 9h6v8H6zM7.500 9V6h3v3M14 4h.01M16 6h.01M14 8h.01M16.500 3h.01',
  tree: 'M10 17v-5M10 12a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9M7 17h6',
  drop: 'M10 3c3 4 5 6.500 5 9a5 5 0 0 1-10 0c0-2.500 2-5 5-9',
  walk: 'M11 5a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3M11 7l-3 4 3 2v5M8 11l-1 6M11 7l2 3h3',
  car: 'M3 13v-2l2-5h10l2 5v4h-2M3 13v2h2M3 11h14M6.500 16.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3M13.500 16.500a1.500 1.500 0 1 0 0-3 1.500 1.500 0 0 0 0 3M8 15h4',
  paw: 'M10 10c-2 0-4 3-4 4.500S7.500 17 10 16s4 .500 4-1.500S12 10 10 10M5 9h.01M8 5.500h.01M12 5.500h.01M15 9h.01',
  noise: 'M4 8v4h3l4 3V5L7 8zM14 8c1 1.200 1 2.800 0 4M16 6c2 2.400 2 5.600 0 8',
  dots: 'M5 10h.01M10 10h.01M15 10h.01',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, filled }: { name: IconName; filled?: boolean }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" data-filled={filled} data-turns={name === 'back' || undefined}>
      <path d={paths[name]} />
    </svg>
  );
}
