import { type MessageType, type MethodShape, messageType } from './schema.ts'

/**
 * Whether apid may send a call of this method to several nodes and merge their replies: each reply, or each message of a
 * stream of replies, then names its node in a `common.Metadata`.
 */
export function fansOut({ reply, serverStreams }: MethodShape): boolean {
  if (serverStreams) return namesNode(reply)
  const messages = reply.fields.find(({ id, repeated, isMessage }) => id === 1 && repeated && isMessage)
  return messages !== undefined && namesNode(messageType(messages.type))
}

const namesNode = ({ fields }: MessageType): boolean => fields.some(({ id, type }) => id === 1 && type === 'common.Metadata')
