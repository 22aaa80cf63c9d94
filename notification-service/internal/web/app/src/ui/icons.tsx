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
  here: 'M10 2v3M10 15v3M2 10h3M15 10h3M10 14a4 4 0 1 0 0-8 4 4 0 0 0 0 8',
  check: 'M4 10.5l4 4 8-9',
  star: 'M10 3l2.1 4.6 5 .6-3.7 3.4 1 4.9-4.4-2.5-4.4 2.5 1-4.900L2.9 8.200l5-.6z',
  back: 'M16 10H4M9 5l-5 5 5 5',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, filled }: { name: IconName; filled?: boolean }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" data-filled={filled}>
      <path d={paths[name]} />
    </svg>
  );
}
