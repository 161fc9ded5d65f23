/** Light or dark: as the system has it, until somebody presses the button. Nothing is stored. */
import { element } from './dom.ts';

export function themeSwitch(changed: () => void): void {
  const button = element('theme');
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  const isDark = (): boolean =>
    root.dataset['theme'] === 'dark' || (root.dataset['theme'] === undefined && system.matches);
  const show = (): void => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    button.setAttribute('aria-label', `switch to ${isDark() ? 'light' : 'dark'} colours`);
    changed();
  };
  button.addEventListener('click', () => {
    root.dataset['theme'] = isDark() ? 'light' : 'dark';
    show();
  });
  system.addEventListener('change', show);
  show();
}
