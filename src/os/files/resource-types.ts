import { EtcFileSpec, EtcFileStatus } from './resources/etc-file.ts'

/** The kinds of resources of this area. */
export const resources = [EtcFileSpec, EtcFileStatus]
