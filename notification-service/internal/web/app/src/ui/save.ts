/** Saves a file under a name with the day, as `reports-2026-03-01.csv`. */
export function save(file: Blob, name: string, ending: string) {
  const address = URL.createObjectURL(file);
  const link = Object.assign(document.createElement('a'), {
    href: address,
    download: `${name}-${new Date().toISOString().slice(0, 10)}.${ending}`,
  });
  link.click();
  URL.revokeObjectURL(address);
}
