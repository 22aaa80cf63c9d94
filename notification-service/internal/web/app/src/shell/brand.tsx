import { cityName, config } from '../state/config';

/** The city's picture and name; the product's where it has set neither. */
export function Brand() {
  return (
    <>
      <img src={config.city?.logo ?? '/icon.svg'} alt="" height="24" /> <span>{cityName()}</span>
    </>
  );
}
