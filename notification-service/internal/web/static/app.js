// Shows the city feed live and, signed in, one's own notifications.
const $ = (id) => document.getElementById(id);

const words = {
  'report.created': () => 'reported',
  'report.status.updated': (n) => `is now ${n.status.replace('_', ' ')}${n.note ? `: ${n.note}` : ''}`,
  'report.vote.received': (n) => `got a vote, score ${n.score}`,
};

function show(list, notification) {
  const item = document.createElement('li');
  const time = new Date(notification.happened_at).toLocaleTimeString();
  item.textContent = `${time} ${notification.report_title} ${words[notification.type](notification)}`;
  list.prepend(item);
  while (list.children.length > 50) list.lastChild.remove();
}

// follow keeps a stream open. EventSource reconnects by itself, with the id
// that it saw last; only an answer other than 200 ends it.
function follow(url, list, onready) {
  const stream = new EventSource(url);
  stream.addEventListener('ready', (e) => { $('state').textContent = 'live'; onready?.(JSON.parse(e.data)); });
  stream.addEventListener('notification', (e) => show(list, JSON.parse(e.data)));
  stream.addEventListener('error', () => { $('state').textContent = 'reconnecting'; });
  return stream;
}

async function showOwn() {
  const session = await fetch('session');
  $('sign-in').hidden = session.status === 200;
  if (session.status !== 200) return;
  const page = await (await fetch('notifications')).json();
  for (const notification of page.notifications.toReversed()) show($('notifications'), notification);
  const stream = follow(`notifications/stream?last_event_id=${page.last_event_id}`, $('notifications'),
    (ready) => { $('unread').textContent = `(${ready.unread_count} unread)`; });
  stream.addEventListener('reset', () => { stream.close(); $('notifications').replaceChildren(); showOwn(); });
}

$('sign-in').addEventListener('submit', async (e) => {
  e.preventDefault();
  const answer = await fetch('dev/token', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(Object.fromEntries(new FormData(e.target))),
  });
  if (!answer.ok) { $('state').textContent = 'sign-in refused'; return; }
  const { access_token: token } = await answer.json();
  await fetch('session', { method: 'POST', headers: { Authorization: `Bearer ${token}` } });
  showOwn();
});

follow('feed/stream', $('feed'));
showOwn();
