// SPDX-License-Identifier: Apache-2.0
package io.outbox.otel;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import java.util.function.Supplier;

/** {@code outbox.trace(new CurrentSpan())}: events carry OpenTelemetry's current span. */
public final class CurrentSpan implements Supplier<String> {
    @Override
    public String get() {
        SpanContext span = Span.current().getSpanContext();
        if (!span.isValid())
            return null;
        return "00-" + span.getTraceId() + "-" + span.getSpanId() + "-" + span.getTraceFlags().asHex();
    }
}
