/** Colours and shapes of the picture, for light and dark pages. Plain rules, no variables: not every viewer has those. */

type Colours = Readonly<Record<string, string>>;

/** Selector → property → colour. */
const light: Readonly<Record<string, Colours>> = {
  '.paper': { fill: '#ffffff' },
  '.casing': { stroke: '#ffffff' },
  text: { fill: '#1c2530' },
  '.faint': { fill: '#566274' },
  '.numa': { fill: '#f4f6fa', stroke: '#cfd7e3' },
  '.inside': { fill: '#f4f6fa' },
  '.cpu rect': { fill: '#dde5f4', stroke: '#8399c4' },
  '.switch rect': { fill: '#f9ecd0', stroke: '#cda24c' },
  '.gpu rect': { fill: '#dcf1de', stroke: '#4f9a5b' },
  '.nic rect': { fill: '#dbeafa', stroke: '#4d8ec9' },
  '.device rect': { fill: '#ffffff', stroke: '#8b96a5' },
  '.fabric rect': { fill: '#cdeccf', stroke: '#37874a' },
  '.pci': { stroke: '#97a1b0' },
  '.nvlink': { stroke: '#4aa65c' },
  '.c2c': { stroke: '#9c62cc' },
  '.socket': { stroke: '#6d84b5' },
};
const dark: Readonly<Record<string, Colours>> = {
  '.paper': { fill: '#12161c' },
  '.casing': { stroke: '#12161c' },
  text: { fill: '#e7ebf2' },
  '.faint': { fill: '#a3aebf' },
  '.numa': { fill: '#1a202a', stroke: '#374253' },
  '.inside': { fill: '#1a202a' },
  '.cpu rect': { fill: '#283450', stroke: '#5c76ad' },
  '.switch rect': { fill: '#3d331c', stroke: '#a5833a' },
  '.gpu rect': { fill: '#1c3a25', stroke: '#4f9d60' },
  '.nic rect': { fill: '#17324c', stroke: '#4a86bf' },
  '.device rect': { fill: '#1a202a', stroke: '#77839a' },
  '.fabric rect': { fill: '#1f4a2b', stroke: '#5fb973' },
  '.pci': { stroke: '#77839a' },
  '.nvlink': { stroke: '#55b369' },
  '.c2c': { stroke: '#b487de' },
  '.socket': { stroke: '#7b95cc' },
};

/** Every rule holds inside this picture only: it may stand in a page with others. */
const SCOPE = '.ncclrun-topology';

const shapes = [
  `${SCOPE}{font-family:ui-sans-serif,system-ui,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}`,
  `${SCOPE} .pci,${SCOPE} .nvlink,${SCOPE} .c2c,${SCOPE} .socket,${SCOPE} .casing{fill:none;stroke-linejoin:round}`,
  `${SCOPE} .device rect{stroke-dasharray:4 3}`,
  `${SCOPE} .link .nvlink,${SCOPE} .link .c2c{stroke-opacity:.85}`,
  `${SCOPE} .link:hover .nvlink,${SCOPE} .link:hover .c2c{stroke-opacity:1;filter:brightness(.75)}`,
];

export function stylesheet(): string {
  return [...shapes, ...rules(light), `@media (prefers-color-scheme:dark){${rules(dark).join('')}}`].join('\n');
}

function rules(colours: Readonly<Record<string, Colours>>): string[] {
  return Object.entries(colours).map(([selector, properties]) => {
    const words = Object.entries(properties).map(([name, colour]) => `${name}:${colour}`);
    return `${SCOPE} ${selector}{${words.join(';')}}`;
  });
}
