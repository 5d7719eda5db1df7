import { expect, test } from 'bun:test'
import { dashboardTerminal } from '../../../src/os/runtime/dashboard-terminal.ts'

test('the dashboard has the second screen, or the terminal that the command line names', () => {
  expect(dashboardTerminal('console=ttyS0 pti=on')).toBe('tty2')
  expect(dashboardTerminal('talos.dashboard.console=tty3 talos.dashboard.console=ttyS0')).toBe('ttyS0')
  for (const wrong of ['/dev/ttyS0', 'sda', '../tty1', ''])
    expect(() => dashboardTerminal(`talos.dashboard.console=${wrong}`)).toThrow('is no terminal, like "tty2" or "ttyS0"')
})
