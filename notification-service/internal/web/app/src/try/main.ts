/** The page with a city in the browser. Its modules read where they are as soon as they are loaded: what they find has to be there before. */
import './place';
import './transport';
import './try.css';

async function start(): Promise<void> {
  await import('../main');
  (await import('./tour')).showTour();
}

void start();
