import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { judge } from '../../rootfs/kernel/kspp.ts'
import { requestedOptions } from '../../rootfs/kernel/options.ts'

const page = readFileSync(join(import.meta.dir, '../../docs/kernel.md'), 'utf8')
const rows = [...page.matchAll(/^\| ([A-Z][\w, ]*) \| (\S.*?) \| (\S.*?) \| (\S.*?) \| (.*?) ?\|$/gm)].map(([, ...cells]) => cells)
const shown = (value: string) => value.replaceAll('"', '').replaceAll(',', ', ')

test('the comparison has every requirement, what the hardened kernel has, and the reason', () => {
  const findings = judge(requestedOptions())
  expect(rows.map(([names, wanted, , found, reason]) => [names, wanted, found, reason])).toEqual(
    findings.map(({ requirement, found }) => [requirement.names.join(', '), requirement.wanted, shown(found), requirement.reason ?? '']),
  )
})

test('the comparison counts its own rows', () => {
  const [, debian, all, ours] = page.match(/leaves (\d+) of the (\d+) rows unmet.*? leaves (\d+), each/) ?? []
  const met = (value: string, wanted: string) =>
    wanted.startsWith('has ') ? value.split(', ').includes(wanted.slice(4)) : value === wanted
  const unmet = (column: number) => rows.filter((cells) => !met(cells[column] ?? '', cells[1] ?? '')).length
  expect([Number(debian), Number(all), Number(ours)]).toEqual([unmet(2), rows.length, unmet(3)])
})
