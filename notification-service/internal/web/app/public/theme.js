// Runs before anything is painted, so that a chosen theme does not flash.
try {
  const theme = localStorage.getItem('cityconnect.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; the system's theme serves then.
}
