import { join } from 'node:path'
import { benchFolder } from './place.ts'

/** Builds the client on the field's own Go library (client/main.go) and gives its path. */
export async function buildClient(): Promise<string> {
  const program = join(benchFolder(), 'client')
  const go = Bun.spawn(['go', 'build', '-trimpath', '-o', program, '.'], {
    cwd: join(import.meta.dir, 'client'),
    env: { ...process.env, CGO_ENABLED: '0' },
  })
  if ((await go.exited) !== 0) throw new Error('the client could not be built: is Go there?')
  return program
}
