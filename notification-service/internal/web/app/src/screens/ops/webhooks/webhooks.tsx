import { route } from '../../../ui/router';
import { DeliveryDetail } from './delivery';
import { EndpointDetail } from './endpoint';
import { EndpointList } from './list';

/** Endpoints of other systems: all of them, then one with its log, then one delivery. */
export function Webhooks({ path: [id, delivery] }: { path: string[] }) {
  if (id && delivery) return <DeliveryDetail webhook={id} id={Number(delivery)} key={delivery} />;
  if (id) return <EndpointDetail id={id} key={`${id}?${route.value.query.toString()}`} />;
  return <EndpointList />;
}
