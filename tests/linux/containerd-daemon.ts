/** A containerd of a built root file system, in a folder of its own. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Store } from '../../src/cosi/store.ts'
import { attachLoop } from '../../src/linux/block/loop.ts'
import * as mount from '../../src/linux/fs/mount.ts'
import { containerd } from '../../src/supervise/containerd/client.ts'
import { containerdProbe } from '../../src/supervise/probe.ts'
import { program } from '../../src/supervise/runner/program.ts'
import { Supervisor } from '../../src/supervise/supervisor.ts'

export class ContainerdDaemon {
  readonly folder = mkdtempSync(join(tmpdir(), 'ichor-containerd-'))
  /** Where the root file system is mounted. */
  readonly root = join(this.folder, 'root')
  readonly client = containerd(join(this.folder, 'c.sock'))
  readonly supervisor = new Supervisor({ store: new Store(), oomFloor: 0 })

  /** Mounts an image of dist/ and starts its containerd; resolves once that serves. */
  async start(image: string): Promise<void> {
    const { folder, root, client, supervisor } = this
    mkdirSync(root)
    const loop = attachLoop(join(import.meta.dir, '../../dist', image), { readOnly: true, autoclear: true })
    mount.mount({ source: loop.device, target: root, type: 'squashfs', flags: ['ro'] })
    loop.release()
    supervisor.load({
      id: 'containerd',
      dependsOn: [],
      restart: 'always',
      runner: program({
        argv: [`${root}/usr/bin/containerd`, '--address', client.address, '--root', `${folder}/lib`, '--state', `${folder}/state`],
        env: { PATH: `${root}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin` },
      }),
      health: { check: containerdProbe(client, 'system') },
    })
    supervisor.start('containerd')
    await supervisor.until('containerd', 'up', AbortSignal.timeout(60_000))
  }

  /** Stops it and everything else that its supervisor runs, and removes its folder. */
  async stop(): Promise<void> {
    await this.supervisor.stopAll()
    this.client.close()
    mount.umountTree(this.folder)
    rmSync(this.folder, { recursive: true, force: true })
  }
}
