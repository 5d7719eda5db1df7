/** Dashboard and alert rules name metrics that the endpoint has, and commands that talosctl has; every alert has a case. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { collect } from '../../src/os/telemetry/metrics/collect.ts'
import { exposition } from '../../src/os/telemetry/metrics/exposition.ts'
import { fill, machine } from '../os/telemetry/metrics/machine.ts'

const folder = join(import.meta.dir, '../../docs/observability')
const textOf = (name: string) => readFileSync(join(folder, name), 'utf8')

interface Rules {
  groups: { rules: { alert: string; expr: string; annotations: { summary: string; action: string } }[] }[]
}
const rules = (parse(textOf('alerts.yaml')) as Rules).groups.flatMap((group) => group.rules)
const cases = parse(textOf('alerts.test.yaml')) as { tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[] }
const { panels } = JSON.parse(textOf('dashboard.json')) as { panels: { title: string; targets?: { expr: string }[] }[] }
const expressions = [...rules.map(({ expr }) => expr), ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))]

/** Metrics of a control plane node whose kernel has everything. */
async function names(): Promise<Set<string>> {
  const it = await machine()
  fill(it.store)
  it.supervisor.load({ id: 'one', dependsOn: [], restart: 'never', runner: () => Promise.reject(new Error('not started')) })
  const { method } = { method: { path: 'a/B' } as never }
  const call = { method, roles: new Set<never>(), metadata: {}, peer: 'unix' }
  it.calls.counts.began(call)
  it.calls.counts.ended(call, 'OK', 1)
  const line = 'avg10=0.00 avg60=0.00 avg300=0.00 total=1'
  const readTextIfThere = (path: string) =>
    path.startsWith('/proc/pressure/') ? `some ${line}\nfull ${line}\n` : it.kernel.files.readTextIfThere(path)
  const [disk, services] = [' 8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n', [{ id: 'one', state: 'Running', starts: 1, health: { healthy: true } }]]
  const readText = (path: string) => (path === '/proc/diskstats' ? disk : it.kernel.files.readText(path))
  const kernel = { ...it.kernel, files: { ...it.kernel.files, readText, readTextIfThere } }
  const text = exposition(collect({ ...it, kernel, supervisor: { list: () => services } as never }))
  it.runtime.stop()
  return new Set([...text.matchAll(/^(\w+)[{ ]/gm)].map(([, name = '']) => name))
}

test('every metric of the dashboard and of the alert rules is one of the endpoint', async () => {
  const there = await names()
  const used = new Set(expressions.flatMap((expression) => expression.match(/\b(?:node|ichor)_\w+/g) ?? []))
  expect(used.size).toBeGreaterThan(40)
  expect([...used].filter((name) => !there.has(name))).toEqual([])
})

test('every alert has a case in which it fires', () => {
  const firing = cases.tests.flatMap(({ alert_rule_test: all }) => all).filter(({ exp_alerts: alerts }) => alerts.length > 0)
  const fired = new Set(firing.map(({ alertname }) => alertname))
  expect(rules.map(({ alert }) => alert).filter((alert) => !fired.has(alert))).toEqual([])
})

test('every alert states what to do, by commands that exist', () => {
  const commands = readFileSync(join(folder, '../reference/commands.md'), 'utf8')
  for (const { alert, annotations } of rules) {
    expect([alert, annotations.action]).not.toEqual([alert, ''])
    for (const [, command] of annotations.action.matchAll(/"talosctl (?:-n ADDRESS )?([a-z][a-z0-9-]*)/g))
      expect(commands).toMatch(new RegExp(`^#+ \`?talosctl ${command}\`?$`, 'm'))
  }
})
