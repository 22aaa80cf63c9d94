/** Loads the page again, as whoever is signed in now. */
export function reloadPage(): void {
  location.reload();
}
