/**
 * The out-of-memory handler on a machine of its own: control groups of version 2 and the kernel's figures of pressure. Its
 * expressions come with the command line, since a machine acts by them before it has the rest of its configuration.
 */
import { afterAll, afterEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { dist, forgetState, stateFolder, TestMachine } from './machine.ts'

const folder = stateFolder('memory')
const image = process.env.ICHOR_VM_IMAGE ?? dist
const minutes = 60_000
let machine: TestMachine | undefined

afterEach(async () => {
  await machine?.unplug()
  machine = undefined
})
afterAll(() => forgetState(folder))

/** Starts a machine that acts by this document from its first start on. */
async function start(name: string, config: string): Promise<TestMachine> {
  const inline = zstdCompressSync(Buffer.from(`apiVersion: v1alpha1\nkind: OOMConfig\n${config}`)).toString('base64')
  machine = await TestMachine.start({ image, console: join(folder, `${name}.log`), append: `talos.config.early=${inline}` })
  console.log(`console: ${join(folder, `${name}.log`)}`)
  return machine
}

test(
  'the group that ranks highest is killed when the expression holds, once in its time, and its service starts again',
  async () => {
    const one = await start(
      'killed',
      // Every figure of the kernel takes part, so that one that could not be read would leave the machine alone.
      [
        'triggerExpression: >-',
        '  qos_memory_current[System] > double(16u * MiB) && qos_memory_peak[System] >= qos_memory_current[System]',
        '  && memory_some_avg10 >= 0.0 && d_memory_full_total >= 0.0 && time_since_trigger > duration("1h")',
        'cgroupRankingExpression: >-',
        '  path.endsWith("/system/udevd") && class == System ? double(memory_current.value()) : 0.0',
        '',
      ].join('\n'),
    )
    await one.shows(/machine configuration found.*source=cmdline-early whole=false/, 10 * minutes)
    const [line] = await one.shows(/cgroup killed because memory is short[^\n]*/, 10 * minutes)
    expect(line).toMatch(/cgroup=system\/udevd score=\d{5,} processes=[1-9]/)
    await one.shows(/service=udevd [\s\S]*service=udevd [^\n]*(Health check successful|Started task|running)/i, 10 * minutes)
    await one.shows(/service=apid .*"Health check successful"/, 10 * minutes)
    // The status line repeats the last problem.
    const kills = one.console.split('\n').filter((each) => each.includes('cgroup killed') && !each.includes('status: '))
    expect(kills.length).toBe(1)
    expect(one.console).not.toMatch(/out-of-memory handler is off|expression of OOMConfig failed/)
  },
  25 * minutes,
)

test(
  'by its defaults a machine at rest kills nothing',
  async () => {
    const one = await start('rest', 'sampleInterval: 200ms\n')
    await one.shows(/service=apid .*"Health check successful"/, 10 * minutes)
    expect(one.console).not.toMatch(/cgroup killed|out-of-memory handler is off|expression of OOMConfig failed/)
  },
  15 * minutes,
)
