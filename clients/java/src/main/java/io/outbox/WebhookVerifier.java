// SPDX-License-Identifier: Apache-2.0
package io.outbox;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.spec.X509EncodedKeySpec;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.function.UnaryOperator;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Verifies that a webhook comes from an outbox that has one of our keys (Standard Webhooks 1.0.0: v1, HMAC-SHA256, and v1a,
 * Ed25519), and that it is not an old one that somebody sends again.
 */
public final class WebhookVerifier {
    /** How far the sender's clock and ours may be apart, and how old a webhook may be. */
    public static final Duration TOLERANCE = Duration.ofMinutes(5);
    /** What X.509 writes before the 32 bytes of an Ed25519 key. */
    private static final String ED25519 = "302a300506032b6570032100";

    private interface Key {
        boolean signed(String version, byte[] text, byte[] signature) throws GeneralSecurityException;
    }

    private final List<Key> keys = new ArrayList<>();
    private final Duration tolerance;
    private final Clock clock;

    /**
     * Keys are written as Standard Webhooks does: whsec_ and base64 of a secret that the sender has, too (HMAC), or whpk_ and
     * base64 of the public key to the sender's whsk_ (Ed25519). During a rotation there are several.
     */
    public WebhookVerifier(String... keys) {
        this(TOLERANCE, Clock.systemUTC(), keys);
    }

    public WebhookVerifier(Duration tolerance, Clock clock, String... keys) {
        this.tolerance = tolerance;
        this.clock = clock;
        for (String key : keys)
            this.keys.add(key(key.strip()));
        if (keys.length == 0)
            throw new IllegalArgumentException("no key is given; give at least one");
    }

    private static Key key(String text) {
        try {
            byte[] bytes = Base64.getDecoder().decode(text.substring(text.indexOf('_') + 1));
            if (text.startsWith("whsec_") && bytes.length >= 24 && bytes.length <= 64)
                return hmac(new SecretKeySpec(bytes, "HmacSHA256"));
            if (text.startsWith("whpk_") && bytes.length == 32)
                return ed25519(KeyFactory.getInstance("Ed25519")
                        .generatePublic(new X509EncodedKeySpec(HexFormat.of().parseHex(ED25519 + HexFormat.of().formatHex(bytes)))));
        } catch (IllegalArgumentException | GeneralSecurityException refused) {
            // below; what the key is, nobody learns
        }
        throw new IllegalArgumentException("a key is neither whsec_ and base64 of 24 to 64 bytes, nor whpk_ and base64 of the "
                + "32 bytes of an Ed25519 public key");
    }

    private static Key hmac(SecretKeySpec secret) {
        return (version, text, signature) -> {
            if (!version.equals("v1"))
                return false;
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(secret);
            return MessageDigest.isEqual(mac.doFinal(text), signature); // in constant time
        };
    }

    private static Key ed25519(PublicKey key) {
        return (version, text, signature) -> {
            if (!version.equals("v1a") || signature.length != 64)
                return false;
            Signature verifier = Signature.getInstance("Ed25519");
            verifier.initVerify(key);
            verifier.update(text);
            return verifier.verify(signature);
        };
    }

    /**
     * Says whether one of our keys signed this body, as it was received, and not long ago.
     *
     * @param header gives a header's value by its name in lower case, or null: {@code request::getHeader}
     * @throws SignatureException it is refused: answer 401
     */
    public void verify(UnaryOperator<String> header, byte[] body) throws SignatureException {
        String id = header.apply("webhook-id"), sent = header.apply("webhook-timestamp");
        String signatures = header.apply("webhook-signature");
        if (id == null || id.isEmpty() || id.contains("."))
            throw new SignatureException("webhook-id is missing or has a dot");
        if (sent == null || !sent.matches("[0-9]{1,11}"))
            throw new SignatureException("webhook-timestamp is not in seconds since 1970");
        Duration age = Duration.between(Instant.ofEpochSecond(Long.parseLong(sent)), clock.instant());
        if (age.abs().compareTo(tolerance) > 0)
            throw new SignatureException("webhook-timestamp is " + age + " from now, at most " + tolerance);
        byte[] head = (id + "." + sent + ".").getBytes(StandardCharsets.UTF_8);
        byte[] text = new byte[head.length + body.length];
        System.arraycopy(head, 0, text, 0, head.length);
        System.arraycopy(body, 0, text, head.length, body.length);
        for (String one : signatures == null ? new String[0] : signatures.split(" ")) {
            if (isOurs(one, text))
                return;
        }
        throw new SignatureException("no signature is of one of our keys");
    }

    private boolean isOurs(String one, byte[] text) {
        int comma = one.indexOf(',');
        if (comma < 0)
            return false;
        for (Key key : keys) {
            try {
                if (key.signed(one.substring(0, comma), text, Base64.getDecoder().decode(one.substring(comma + 1))))
                    return true;
            } catch (IllegalArgumentException | GeneralSecurityException unreadable) {
                // not a signature
            }
        }
        return false;
    }
}
