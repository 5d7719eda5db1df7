import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import { Store } from '../../src/cosi/store.ts'
import { containerd as enums } from '../../src/rpc/enums.ts'
import { unary } from '../../src/rpc/server/method.ts'
import { type Server, serveUnix } from '../../src/rpc/server/server.ts'
import { RpcError } from '../../src/rpc/status.ts'
import { type Containerd, containerd } from '../../src/supervise/containerd/client.ts'

const { RUNNING, STOPPED } = enums.v1.types.Status

interface Task {
  pid: number
  status: number
  exitStatus: number
  ended: PromiseWithResolvers<void>
}

/** A containerd that runs nothing: tasks end when the test or a kill ends them. It can disconnect and reconnect. */
export class ScriptedContainerd {
  readonly folder = mkdtempSync(join(tmpdir(), 'ichor-containerd-'))
  readonly client: Containerd
  readonly containers = new Map<string, { spec: unknown; snapshotKey: string }>()
  readonly tasks = new Map<string, Task>()
  readonly calls: string[] = []
  /** The process of a task. */
  pidOf: (id: string) => number = () => ++this.#pid
  /** Called when a container is removed. */
  deleted: (id: string) => void = () => {}
  /** Called while a task is started, before its process runs. */
  starting: (id: string) => void = () => {}
  #server?: Server
  #pid = 100

  constructor(address?: string) {
    this.client = containerd(address ?? join(this.folder, 'c.sock'))
  }

  async start(): Promise<this> {
    this.#server = await serveUnix(
      { path: this.client.address },
      { methods: this.#methods(), store: new Store(), log: silent, roles: () => new Set(['os:admin']) },
    )
    return this
  }

  async vanish(): Promise<void> {
    await this.#server?.close(0)
  }

  async close(): Promise<void> {
    this.client.close()
    await this.vanish()
    rmSync(this.folder, { recursive: true })
  }

  end(id: string, exitStatus: number): void {
    const task = this.tasks.get(id)!
    task.status = STOPPED
    task.exitStatus = exitStatus
    task.ended.resolve()
  }

  #task(id: string): Task {
    const task = this.tasks.get(id)
    if (!task) throw new RpcError('NotFound', `task "${id}" not found`)
    return task
  }

  #methods() {
    const note = (call: string) => this.calls.push(call)
    const admin = ['os:admin'] as const
    return [
      unary('grpc.health.v1.Health/Check', admin, () => ({ status: 1 })),
      unary('containerd.services.images.v1.Images/List', admin, () => ({ images: [] })),
      unary('containerd.services.containers.v1.Containers/Create', admin, ({ container }) => {
        note(`create ${container!.id}`)
        if (this.containers.has(container!.id)) throw new RpcError('AlreadyExists', 'it is there')
        const spec = JSON.parse(Buffer.from(container!.spec!.value).toString())
        this.containers.set(container!.id, { spec, snapshotKey: container!.snapshotKey })
        return {}
      }),
      unary('containerd.services.containers.v1.Containers/Delete', admin, ({ id }) => {
        if (!this.containers.delete(id)) throw new RpcError('NotFound', 'no such container')
        note(`delete ${id}`)
        this.deleted(id)
        return {}
      }),
      unary('containerd.services.snapshots.v1.Snapshots/Remove', admin, () => {
        throw new RpcError('NotFound', 'no such snapshot')
      }),
      unary('containerd.services.tasks.v1.Tasks/Create', admin, ({ containerId, rootfs }) => {
        note(`task ${containerId} on ${rootfs.map(({ type, source, options }) => `${type} ${source} ${options.join(',')}`)}`)
        const pid = this.pidOf(containerId)
        this.tasks.set(containerId, { pid, status: 1, exitStatus: 0, ended: Promise.withResolvers() })
        return { containerId, pid }
      }),
      unary('containerd.services.tasks.v1.Tasks/Start', admin, ({ containerId }) => {
        this.starting(containerId)
        this.#task(containerId).status = RUNNING
        return { pid: this.#task(containerId).pid }
      }),
      unary('containerd.services.tasks.v1.Tasks/Get', admin, ({ containerId }) => {
        const { pid, status } = this.#task(containerId)
        return { process: { id: containerId, pid, status } }
      }),
      unary('containerd.services.tasks.v1.Tasks/Wait', admin, async ({ containerId }) => {
        const task = this.#task(containerId)
        await task.ended.promise
        return { exitStatus: task.exitStatus }
      }),
      unary('containerd.services.tasks.v1.Tasks/Kill', admin, ({ containerId, signal }) => {
        note(`kill ${containerId} ${signal}`)
        this.#task(containerId)
        this.end(containerId, 128 + signal)
        return {}
      }),
      unary('containerd.services.tasks.v1.Tasks/Delete', admin, ({ containerId }) => {
        if (this.#task(containerId).status !== STOPPED) throw new RpcError('FailedPrecondition', 'task must be stopped')
        this.tasks.delete(containerId)
        note(`delete task ${containerId}`)
        return {}
      }),
    ]
  }
}
