import { expect, test } from 'bun:test'
import { ModuleTableError } from '../../../src/wire/modules/dependencies.ts'
import { moduleTables } from '../../../src/wire/modules/tables.ts'
import { type Built, family, kernelModules, order } from './built-module.ts'

const tablesOf = (modules: Readonly<Record<string, Built>>) => {
  const tables = moduleTables(kernelModules(modules), order)
  return (name: string) => Buffer.from(tables.get(name) ?? []).toString('latin1')
}

test('the tables list dependencies, aliases, symbols, soft dependencies and device nodes in the order of modules.order', () => {
  const table = tablesOf(family)
  expect(table('modules.dep')).toBe(`kernel/b/third.ko: kernel/a/second.ko kernel/a/first-one.ko
kernel/c/fifth.ko: kernel/b/fourth.ko kernel/a/second.ko kernel/a/first-one.ko
kernel/a/second.ko: kernel/a/first-one.ko
kernel/b/fourth.ko: kernel/a/second.ko kernel/a/first-one.ko
kernel/a/first-one.ko:
`)
  expect(table('modules.alias')).toBe(`# Aliases extracted from modules themselves.
alias devname:net/tun third
alias char-major-10-200 third
alias pci:v00008086d*sv*sd*bc*sc*i* third
alias a[b third
alias of:N*T[a-c]-x second
alias pci:v00008086d*sv*sd*bc*sc*i* first_one
alias net-pf-16 first_one
`)
  expect(table('modules.softdep')).toContain('\nsoftdep second pre: first_one post: third\n')
  expect(table('modules.symbols')).toContain('\nalias symbol:fourth_a fourth\n')
  expect(table('modules.devname')).toBe('# Device nodes to trigger on-demand module loading.\nthird net/tun c10:200\n')
})

test('without devices the table of their nodes is empty', () => {
  expect(tablesOf({ 'a.ko': { info: [] } })('modules.devname')).toBe('')
})

test.each([
  [
    'need each other',
    { 'a.ko': { info: [], exported: ['a'], needed: ['b'] }, 'b.ko': { info: [], exported: ['b'], needed: ['a'] } },
    'in a circle: a, b',
  ],
  [
    'have lines in their aliases',
    { 'a.ko': { info: ['alias=x y\nalias z'] } },
    'module "a.ko": "x y\\nalias z" fits in no table of modules',
  ],
  ['have endless aliases', { 'a.ko': { info: [`alias=${'x'.repeat(2000)}`] } }, 'fits in no table of modules'],
])('modules that %s are refused', (_, modules, reason) => {
  expect(() => tablesOf(modules)).toThrow(ModuleTableError)
  expect(() => tablesOf(modules)).toThrow(reason)
})
