/** Podman of a story's own: its API on a socket, with images, containers and networks in a folder that goes with it. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CommandResult, finished } from '../../support/command-result.ts'
import { eventually } from '../cluster.ts'

/** A running `podman system service`. */
export class Podman {
  readonly socket: string
  readonly #folder: string
  readonly #env: Record<string, string>
  #service: Bun.Subprocess | undefined

  constructor(folder: string) {
    this.#folder = join(folder, 'podman')
    this.socket = join(this.#folder, 'podman.sock')
    const paths = { containers: join(this.#folder, 'containers.conf'), storage: join(this.#folder, 'storage.conf') }
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    // Limits that a host without CAP_SYS_RESOURCE may set, and control groups without systemd.
    writeFileSync(
      paths.containers,
      `[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "${this.#folder}/tmp"
[network]
network_backend = "netavark"
network_config_dir = "${this.#folder}/networks"
`,
    )
    writeFileSync(paths.storage, `[storage]\ndriver = "overlay"\ngraphroot = "${this.#folder}/storage"\nrunroot = "${this.#folder}/run"\n`)
    this.#env = {
      ...(process.env as Record<string, string>),
      CONTAINERS_CONF: paths.containers,
      CONTAINERS_STORAGE_CONF: paths.storage,
      PATH: `/usr/sbin:/sbin:${process.env.PATH}`,
    }
  }

  async start(): Promise<void> {
    const log = Bun.file(join(this.#folder, 'service.log'))
    this.#service = Bun.spawn(['podman', 'system', 'service', '--time', '0', `unix://${this.socket}`], {
      env: this.#env,
      stdin: 'ignore',
      stdout: log,
      stderr: log,
    })
    await eventually(async () => {
      if (!existsSync(this.socket)) throw new Error(`podman does not serve: ${readFileSync(join(this.#folder, 'service.log'), 'utf8')}`)
    }, 30)
  }

  /** Runs a command of podman on the same folder. */
  run(...args: string[]): Promise<CommandResult> {
    return finished(Bun.spawn(['podman', ...args], { env: this.#env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' }))
  }

  /** The lines that a command of podman prints. */
  async lines(...args: string[]): Promise<string[]> {
    const { code, stdout, stderr } = await this.run(...args)
    if (code !== 0) throw new Error(`podman ${args.join(' ')}: ${stderr}`)
    return stdout.split('\n').filter((line) => line !== '')
  }

  /** Takes away all that this engine has, then ends it. */
  async end(): Promise<void> {
    await this.run('rm', '--all', '--force', '--volumes', '--time', '0')
    await this.run('network', 'prune', '--force')
    await this.run('rmi', '--all', '--force')
    this.#service?.kill()
    await this.#service?.exited
    // Storage is an overlay, which may leave a mount of its folder.
    await finished(Bun.spawn(['umount', '--recursive', join(this.#folder, 'storage', 'overlay')], { stdout: 'pipe', stderr: 'pipe' }))
  }
}
