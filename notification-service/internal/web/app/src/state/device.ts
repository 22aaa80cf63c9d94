/**
 * This browser, as one of the user's devices that notifications are pushed to. It
 * is loaded only where somebody asked for that.
 *
 *     not asked ──asks, allows──▶ a device ──signs out, removes it──▶ not asked
 *                                  │    ▲ │
 *             its push service     │    │ └──another signs in here──▶ not asked
 *             has another address  └────┘
 *             for it: says so
 */
import { must, notificationService, type Device } from '../api/client';
import { language } from '../lang/i18n';
import { userData } from './storage';

/** The id that the server knows this browser by; empty unless its user asked for notifications here. */
export const thisDevice = userData('device', () => '');
/** The address at its push service that the server knows. */
export const toldAddress = userData('device-address', () => '');

/** Whether this browser can be notified. After a denial the browser does not ask again. */
export function canBeNotified(): 'yes' | 'denied' | 'unsupported' {
  if (!('PushManager' in window && 'Notification' in window && 'serviceWorker' in navigator)) return 'unsupported';
  return Notification.permission === 'denied' ? 'denied' : 'yes';
}

/** How often this browser has been removed. */
let forgotten = 0;

/**
 * Makes this browser a device, or says again that it is one: its language or the
 * city's key may have changed. Returns undefined if the reader does not allow it,
 * who is asked by the browser: only at a click.
 */
export async function addThisDevice(): Promise<Device | undefined> {
  const since = forgotten;
  if ((await Notification.requestPermission()) !== 'granted') return undefined;
  const { key } = await must(notificationService.GET('/push/key'));
  const { pushManager } = await navigator.serviceWorker.ready;
  let subscription = await pushManager.getSubscription();
  if (subscription && keyOf(subscription) !== key) {
    await subscription.unsubscribe();
    subscription = null;
  }
  subscription ??= await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint = '', keys: { p256dh = '', auth = '' } = {} } = subscription.toJSON();
  const device = await must(notificationService.POST('/me/push', { body: { endpoint, keys: { p256dh, auth }, language: language.value } }));
  if (since !== forgotten) {
    // Removed while this was on its way.
    await removeDevice(device.id);
    return undefined;
  }
  const before = thisDevice.value;
  thisDevice.value = device.id;
  toldAddress.value = endpoint;
  // At another address it is another device. The one before goes with the next push to it, or now.
  if (before && before !== device.id) await removeDevice(before).catch(() => {});
  return device;
}

/** Removes a device of the user's, this one or another. */
export async function removeDevice(id: string): Promise<void> {
  await must(notificationService.DELETE('/me/push/{id}', { params: { path: { id } } }));
  if (id === thisDevice.value) await forgetThisDevice();
}

/** Ends pushes to this browser. The server notices at its next push, by the answer of the push service. */
export async function forgetThisDevice(): Promise<void> {
  forgotten++;
  thisDevice.value = '';
  toldAddress.value = '';
  const registration = await navigator.serviceWorker.getRegistration();
  await (await registration?.pushManager.getSubscription())?.unsubscribe();
}

/** Before the user signs out. */
export async function leaveDevice(): Promise<void> {
  const id = thisDevice.value;
  if (id) await removeDevice(id).catch(forgetThisDevice);
}

/**
 * Ends what is pushed here for somebody else, whose session ended by itself. Of the
 * user's own it says where that goes now: the push service may have changed it, and
 * the service worker reports that only while somebody is signed in.
 */
export async function checkDevice(): Promise<void> {
  if (!thisDevice.value) return forgetThisDevice();
  if (Notification.permission !== 'granted') return;
  const { pushManager } = await navigator.serviceWorker.ready;
  const subscription = await pushManager.getSubscription();
  if (subscription?.toJSON().endpoint !== toldAddress.value) await addThisDevice();
}

/** The key that a browser asked its push service with, in base64url. */
function keyOf({ options: { applicationServerKey } }: PushSubscription): string {
  const bytes = String.fromCharCode(...new Uint8Array(applicationServerKey ?? new ArrayBuffer(0)));
  return btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
