import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'

/** The credentials of `docker login` for a registry's host; credential helpers are not called. */
export async function dockerCredentials(env: Io['env']): Promise<(host: string) => { username: string; password: string } | undefined> {
  const path = join(env.DOCKER_CONFIG ?? join(env.HOME ?? homedir(), '.docker'), 'config.json')
  const text = await readFile(path, 'utf8').catch(() => '{}')
  let auths: Record<string, { auth?: string }>
  try {
    auths = (JSON.parse(text) as { auths?: typeof auths }).auths ?? {}
  } catch {
    throw new UsageError(`"${path}" is not JSON`)
  }
  return (host) => {
    const names = host === 'registry-1.docker.io' ? ['https://index.docker.io/v1/', 'docker.io', host] : [host, `https://${host}`]
    const auth = names.map((name) => auths[name]?.auth).find(Boolean)
    if (!auth) return undefined
    const [username = '', ...password] = Buffer.from(auth, 'base64').toString().split(':')
    return { username, password: password.join(':') }
  }
}
