/** Converts a message of the resource API to a resource. */
import type { Resource } from '../cosi/resource.ts'
import type { cosi, google } from './messages.ts'
import { decodeSpec } from './resource-codec.ts'

/** The resource in a message, with its spec as a plain object keyed like its YAML. Throws ProtoError. */
export function fromMessage({ metadata, spec }: cosi.resource.Resource): Resource {
  return {
    metadata: {
      namespace: metadata?.namespace ?? '',
      type: metadata?.type ?? '',
      id: metadata?.id ?? '',
      version: Number(metadata?.version) || 0,
      owner: metadata?.owner ?? '',
      phase: metadata?.phase === 'tearingDown' ? 'tearingDown' : 'running',
      created: toDate(metadata?.created),
      updated: toDate(metadata?.updated),
      labels: metadata?.labels ?? {},
      annotations: metadata?.annotations ?? {},
      finalizers: metadata?.finalizers ?? [],
    },
    spec: decodeSpec(metadata?.type ?? '', spec?.protoSpec ?? new Uint8Array()),
  }
}

/** The date of a google.protobuf.Timestamp; the epoch when absent. */
export function toDate(timestamp: google.protobuf.Timestamp | undefined): Date {
  return new Date((timestamp?.seconds ?? 0) * 1000 + Math.floor((timestamp?.nanos ?? 0) / 1e6))
}
