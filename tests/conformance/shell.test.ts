import { expect, test } from 'bun:test'
import { asSources, configurationOf } from './shell.ts'

test('lists of archives, in both formats, name sources in place of packages', () => {
  expect(asSources('# deb comment\ndeb [signed-by=/k] http://debian.example a main\n')).toBe(
    '# deb comment\ndeb-src [signed-by=/k] http://debian.example a main\n',
  )
  expect(asSources('Types: deb\nURIs: http://debian.example\nSuites: a\n\nTypes: deb deb-src\nSuites: b\n')).toBe(
    'Types: deb-src\nURIs: http://debian.example\nSuites: a\n\nTypes: deb-src\nSuites: b\n',
  )
})

test('settings take the place of what was set or not set', () => {
  const before = ['# comment', '# CONFIG_ASH is not set', 'CONFIG_ASH_ALIAS=n', '# CONFIG_ASHES is not set']
  expect(configurationOf(before, ['CONFIG_ASH=y', 'CONFIG_ASH_ALIAS=y'])).toBe(
    '# comment\n# CONFIG_ASHES is not set\nCONFIG_ASH=y\nCONFIG_ASH_ALIAS=y\n',
  )
})
