/** What is typed at a prompt for a secret, on a terminal of its own. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'

test('a recovery key that is typed is not shown', async () => {
  const main = join(import.meta.dir, '../../../src/main.ts')
  const key = 'not-a-recovery-key'
  let shown = ''
  let typed = false
  const child = Bun.spawn(
    [process.execPath, main, 'talosctl', 'volumes', 'unlock', '--recovery-key', '--insecure', '--nodes', '127.0.0.1'],
    {
      terminal: {
        data(terminal, bytes) {
          shown += Buffer.from(bytes).toString()
          if (typed || !shown.includes('Recovery key')) return
          typed = true
          terminal.write(`${key}\r`)
        },
      },
    },
  )
  expect(await child.exited).toBe(1)
  expect(shown).toContain('the recovery key is mistyped')
  expect(shown).not.toContain(key)
})
