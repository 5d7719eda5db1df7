import type { Machine } from '../area.ts'

const program = '/usr/sbin/nft'
const scriptFile = '/run/nftables-talos.nft'
const patience = 10_000

/** Hands a script to nft(8). Rejects with its words when it refuses, or when it takes too long. */
export const runNft =
  ({ spawn, kernel: { files } }: Pick<Machine, 'spawn'> & { kernel: Pick<Machine['kernel'], 'files'> }) =>
  async (script: string): Promise<void> => {
    await files.writeAtomic(scriptFile, script, { mode: 0o600 })
    const child = spawn({ argv: [program, '-f', scriptFile], env: {}, cwd: '/' })
    const timer = setTimeout(() => child.kill('SIGKILL'), patience)
    const said = await Promise.all(child.output.map((stream) => new Response(stream).text()))
    const { code, signal } = await child.exited
    clearTimeout(timer)
    if (code !== 0) throw new Error(`set packet filter: ${signal ? `nft was ended by ${signal}` : said.join('').trim().split('\n')[0]}`)
  }
