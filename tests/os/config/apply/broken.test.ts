/** Twelve broken configurations and the complete message of a node for each. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigApply } from '../../../../src/os/config/apply/config-apply.ts'
import { machineInMemory } from '../machine.ts'

const folder = join(import.meta.dir, '../../../transcripts/config')
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => name.replace(/\.yaml$/, ''))

test('there are twelve', () => expect(names.length).toBe(12))

for (const name of names)
  test(name.replaceAll('-', ' '), async () => {
    const service = new ConfigApply(machineInMemory().machine)
    const reply = await service.apply(readFileSync(join(folder, `${name}.yaml`), 'utf8'), 'auto', { dryRun: true }).then(
      () => 'it was taken',
      (error: Error) => error.message,
    )
    expect(`${reply}\n`).toBe(readFileSync(join(folder, `${name}.txt`), 'utf8'))
  })
