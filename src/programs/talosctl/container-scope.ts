import { common } from '../../rpc/enums.ts'

/** The flags that choose between the system's containers and those of Kubernetes. */
export interface ContainerOptions {
  kubernetes?: boolean
  useCri?: boolean
}

/** Namespace and driver of the containers that are meant. */
export function containerScope({ kubernetes, useCri }: ContainerOptions): { namespace: string; driver: number } {
  return {
    namespace: kubernetes ? 'k8s.io' : 'system',
    driver: kubernetes || useCri ? common.ContainerDriver.CRI : common.ContainerDriver.CONTAINERD,
  }
}

/** A container's id in a table: those inside a pod hang below it. */
export function displayId({ id, podId }: { id: string; podId: string }): string {
  return id === podId || podId === '' ? id : `└─ ${id}`
}
