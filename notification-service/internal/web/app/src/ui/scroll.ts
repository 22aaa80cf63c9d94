/**
 * Where the reader was on the page: how far down, and which link had the focus.
 *
 * The window's position alone is not enough. Lists below the window are not
 * laid out until they are scrolled to, so that their heights are estimates:
 * what is kept is the first visible link and its place in the window.
 */
export interface ReadingPosition {
  top: number;
  /** The first visible link, and how far it is from the top of the window. */
  link?: { href: string; top: number };
  /** The link that had the focus. */
  focus?: string;
}

const links = () => [...document.querySelectorAll<HTMLAnchorElement>('main a[href]')];
const find = (href: string) => links().find((link) => link.getAttribute('href') === href);

export function readingPosition(): ReadingPosition {
  const first = links().find((link) => link.getBoundingClientRect().top >= 0);
  const focus = document.activeElement?.closest('main a[href]')?.getAttribute('href');
  return {
    top: window.scrollY,
    ...(first && { link: { href: first.getAttribute('href') ?? '', top: first.getBoundingClientRect().top } }),
    ...(focus && { focus }),
  };
}

/** Scrolls there, and reports whether the focus could be put back. */
export function restoreReadingPosition({ top, link, focus }: ReadingPosition): boolean {
  window.scrollTo(0, top);
  const align = () => {
    const moved = link && find(link.href)?.getBoundingClientRect().top;
    if (link && moved !== undefined) window.scrollBy(0, moved - link.top);
  };
  align();
  // Rows that have come into the window are laid out now, and may be of another height.
  requestAnimationFrame(align);
  const focused = focus ? find(focus) : undefined;
  focused?.focus({ preventScroll: true });
  return focused !== undefined;
}
